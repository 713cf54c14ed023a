'use strict';
{% include 'filter.js' %}
// Only the filter; the page is complete without it.
filterWith((text) => {
  const has = (what) => what.toLowerCase().includes(text);
  let count = 0;
  for (const row of document.querySelectorAll('.hosts tbody tr')) {
    const whole = [...row.cells].slice(1).some(
      (cell) => has(cell.textContent));
    count += narrow(row, has, text, whole);
  }
  return count;
});
