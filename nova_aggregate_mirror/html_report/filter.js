// The filter of the page's rows, whose first cell has a list of hosts.

// Hides the hosts of a row that do not match, and the row if none does.
// Returns the number of hosts that match.
function narrow(row, has, text, whole) {
  const hosts = [...row.querySelectorAll('th li')];
  for (const host of hosts) {
    host.hidden = !whole && !has(host.textContent);
  }
  const found = hosts.length
    ? hosts.filter((host) => !host.hidden).length
    : Number(whole || has(row.cells[0].textContent));
  row.hidden = !found;
  const list = row.querySelector('th details');
  if (list) {
    list.open = text !== '' && !whole && found > 0;
  }
  return found;
}

// Shows the filter; ``filter`` gets the text and returns the hosts found.
function filterWith(filter) {
  const box = document.getElementById('filter');
  let waits = 0;
  box.hidden = false;
  box.querySelector('input').addEventListener('input', (event) => {
    clearTimeout(waits);
    waits = setTimeout(() => {
      const text = event.target.value.trim().toLowerCase();
      const count = filter(text);
      box.querySelector('output').textContent = text
        ? `${count} ${count === 1 ? 'host' : 'hosts'}` : '';
    }, 100);
  });
}
