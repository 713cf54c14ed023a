'use strict';
// Filter, and tooltips of the cells; the page is complete without them.
const box = document.getElementById('filter');
const shown = box.querySelector('output');
const names = [...document.querySelectorAll('.head th')].map(
  (cell) => cell.title);
const words = {
  right: 'in sync', missing: 'missing', stale: 'stale', pending: 'pending',
  nodeless: 'no node', unknown: 'unknown',
};

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

function filter(text) {
  const has = (what) => what.toLowerCase().includes(text);
  const wanted = new Set(
    text ? [...names.keys()].filter((at) => names[at] && has(names[at])) : []);
  for (const one of document.querySelectorAll('.f')) {
    one.hidden = !has(one.textContent);
  }
  for (const one of document.querySelectorAll('section:has(.f)')) {
    one.hidden = !one.querySelector('.f:not([hidden])');
  }
  let count = 0;
  for (const row of document.querySelectorAll('.chunk tr')) {
    const marks = [...row.querySelectorAll('.mark')];
    const whole = !text || inColumns(row, wanted)
      || marks.some((mark) => has(mark.textContent));
    const hosts = [...row.querySelectorAll('li')];
    for (const host of hosts) {
      host.hidden = !whole && !has(host.textContent);
    }
    const found = hosts.length
      ? hosts.filter((host) => !host.hidden).length
      : Number(whole || has(row.cells[0].textContent));
    row.hidden = !found;
    const list = row.querySelector('details');
    if (list) {
      list.open = text !== '' && !whole && found > 0;
    }
    count += found;
  }
  shown.textContent = text ? `${count} ${count === 1 ? 'host' : 'hosts'}` : '';
}

box.hidden = false;
let waits = 0;
box.querySelector('input').addEventListener('input', (event) => {
  clearTimeout(waits);
  waits = setTimeout(filter, 100, event.target.value.trim().toLowerCase());
});
document.addEventListener('mouseover', (event) => {
  const cell = event.target.closest('.chunk td[class]');
  if (cell && !cell.title) {
    const state = Object.keys(words).find(
      (one) => cell.classList.contains(one));
    cell.title = `${words[state]}: ${names[column(cell)]}`;
  }
});
