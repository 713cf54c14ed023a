'use strict';
{% include 'filter.js' %}
// Filter, tooltips, and the dialog of a host; the page is complete without.
const aggregates = [...document.querySelectorAll('#aggregates tbody tr')];
// Of each column; the first has the hosts.
const names = ['', ...aggregates.map((row) => (
  `${row.cells[0].textContent} (${row.lastElementChild.textContent})`))];
// Whether nova and placement have the aggregate.
const states = {
  in_sync: ['yes', 'yes'],
  missing: ['yes', 'no'],
  stale: ['no', 'yes'],
  pending: ['yes', 'no: no resource provider yet'],
  without_compute_node: ['yes', 'no: no compute node'],
  unknown: ['yes', 'unknown'],
};
const dialog = document.getElementById('host');

function column(cell) {
  let place = 0;
  for (let one = cell; one; one = one.previousElementSibling) {
    place += one === cell ? 0 : one.colSpan;
  }
  return place;
}

function inColumns(row, wanted) {
  return [...row.cells].some(
    (cell) => cell.className && wanted.has(column(cell)));
}

// Hides the servers of a row that do not match, and their commands.
function narrowServers(row, has, text) {
  const servers = [...row.querySelectorAll('th li')];
  const others = [...row.cells].slice(1, servers.length ? -1 : undefined);
  narrow(row, has, text, others.some((cell) => has(cell.textContent)));
  for (const [place, one] of row.querySelectorAll('td li').entries()) {
    one.hidden = servers[place].hidden;
  }
  const commands = row.querySelector('td details');
  if (commands) {
    commands.open = row.querySelector('th details').open;
  }
}

function filter(text) {
  const has = (what) => what.toLowerCase().includes(text);
  const wanted = new Set(
    text ? [...names.keys()].filter((at) => names[at] && has(names[at])) : []);
  for (const one of document.querySelectorAll('.f')) {
    one.hidden = !has(one.textContent);
  }
  for (const row of document.querySelectorAll('.servers .f')) {
    narrowServers(row, has, text);
  }
  for (const one of document.querySelectorAll('section:has(.f)')) {
    one.hidden = !one.querySelector('.f:not([hidden])');
  }
  let count = 0;
  for (const row of document.querySelectorAll('.chunk tbody tr')) {
    const marks = [...row.querySelectorAll('.mark')];
    const whole = !text || inColumns(row, wanted)
      || marks.some((mark) => has(mark.textContent));
    const found = narrow(row, has, text, whole);
    // Providers without a compute node are no hosts.
    count += row.querySelector('b bdi, summary bdi') ? found : 0;
  }
  return count;
}

filterWith(filter);
document.addEventListener('mouseover', (event) => {
  const cell = event.target.closest('.chunk td[class], .head th + th');
  if (cell && !cell.title) {
    const state = cell.querySelector('i');
    cell.title = (state ? `${state.textContent}: ` : '') + names[column(cell)];
  }
});

function added(parent, name, text = '', style = '') {
  const one = parent.appendChild(document.createElement(name));
  one.textContent = text;
  one.className = style;
  return one;
}

// A row of the dialog: an aggregate, whose row in the page has name, zone and
// UUID, and the cell of the matrix.
function describe(cell, aggregate) {
  const row = added(dialog.querySelector('tbody'), 'tr');
  const head = added(row, 'th');
  head.scope = 'row';
  const [name, zone] = [...aggregate.cells].map((one) => one.textContent);
  added(added(head, 'b'), 'bdi', name);
  if (zone) {
    added(head, 'span', `zone ${zone}`, 'zone');
  }
  added(head, 'code', aggregate.lastElementChild.textContent);
  const [nova, placement] = states[cell.className];
  added(row, 'td', nova);
  const last = added(row, 'td');
  added(last, 'span', '', `c ${cell.className}`);
  const share = cell.querySelector('small');
  last.append(` ${placement}`, share
    ? ` for ${share.textContent.replace('/', ' of ')} compute nodes` : '');
}

// Shows the aggregates of a host; hosts in a row have the same.
function show(row, host, name) {
  dialog.querySelector('h2').textContent = name;
  dialog.querySelector('.of').replaceChildren(...[
    ...row.querySelectorAll('.mark'), ...host.querySelectorAll('code'),
  ].map((one) => one.cloneNode(true)));
  dialog.querySelector('tbody').replaceChildren();
  const cells = [...row.querySelectorAll('td[class]')];
  for (const cell of cells) {
    describe(cell, aggregates[column(cell) - 1]);
  }
  dialog.querySelector('.scroll').hidden = !cells.length;
  dialog.querySelector('.none').hidden = cells.length > 0;
  dialog.showModal();
}

document.getElementById('click').hidden = false;
for (const name of document.querySelectorAll(
  '.chunk th > b > bdi, .chunk li > bdi')) {
  const button = document.createElement('button');
  button.className = 'host';
  name.replaceWith(button);
  button.append(name);
}
// A host that has a row for itself needs no list.
for (const list of document.querySelectorAll(
  '.chunk details:not(:has(li + li))')) {
  list.firstChild.className = 'host';
}
document.addEventListener('click', (event) => {
  const clicked = event.target.closest('.chunk .host');
  if (clicked) {
    event.preventDefault();
    const row = clicked.closest('tr');
    const host = clicked.closest('li') || row.querySelector('li') || row;
    show(row, host, host.querySelector('bdi').textContent);
  }
});
