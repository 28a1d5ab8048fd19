'use strict';
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  all('.script').forEach(part => part.classList.remove('script'));
  const box = one('q'), count = one('count'), said = one('said'), time = one('time');

  // Rows, with what the words of the filter look at.
  const texts = (row, selector) => all(selector, row).map(part => part.textContent.toLowerCase());
  const rows = all('tbody tr').map(row => {
    // Some are of the whole time.
    const [from, to] = row.dataset.t?.split(' ').map(Number) ?? [-Infinity, Infinity];
    return { row, from, to, look: null };
  });
  // What a reader sees of a row, without commands.
  const text = row => {
    const copy = row.cloneNode(true);
    all('[popover]', copy).forEach(part => part.remove());
    return copy.textContent.toLowerCase();
  };
  const ports = text => (text.match(/\d+(–\d+)?/g) ?? []).map(range => range.split('–').map(Number));
  const look = entry => entry.look ??= {
    ip: texts(entry.row, 'a'),
    port: [...texts(entry.row, 'i'), ...all('[data-p]', entry.row).map(cell => cell.dataset.p)].flatMap(ports),
    sni: texts(entry.row, '.n'), proto: texts(entry.row, '.o').flatMap(text => text.split(/[\s,]+/)),
    all: text(entry.row),
  };

  // IPv4 addresses as numbers, for prefixes such as 10.0.0.0/8.
  const number = text => {
    const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
    return parts ? parts.slice(1).reduce((sum, part) => sum * 256 + Number(part), 0) : null;
  };
  const has = {
    ip: word => {
      const [base, length] = word.split('/');
      const bits = Number(length);
      if (length && number(base) !== null && bits <= 32) {
        const size = 2 ** (32 - bits), net = Math.floor(number(base) / size);
        return entry => entry.ip.some(own => number(own) !== null && Math.floor(number(own) / size) === net);
      }
      const open = /[.:*]$/.test(word), start = word.replace(/\*$/, '');
      return entry => entry.ip.some(own => own === word || (open && own.startsWith(start)));
    },
    port: word => entry => entry.port.some(([first, last = first]) => first <= word && word <= last),
    sni: word => entry => entry.sni.some(own => own.includes(word)),
    proto: word => entry => entry.proto.includes(word),
  };
  const test = word => {
    const [, kind, rest] = /^(ip|port|sni|proto):(.*)$/.exec(word) ?? [];
    return kind ? has[kind](rest) : entry => entry.all.includes(word);
  };

  let brush = null, range = null;
  const bodies = all('tbody');
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    const tests = words.filter(word => word && !/^(ip|port|sni|proto):$/.test(word)).map(test);
    let seen = 0;
    for (const entry of rows) {
      const inTime = !brush || (entry.to >= brush[0] && entry.from < brush[1]);
      const hit = inTime && tests.every(test => test(look(entry)));
      entry.row.hidden = !hit;
      seen += hit;
    }
    count.textContent = tests.length || brush ? `${seen} of ${rows.length} rows` : '';
    bodies.forEach(body => body.parentElement.classList.toggle('none', !body.querySelector('tr:not([hidden])')));
  };
  box.addEventListener('input', show);
  box.form.addEventListener('submit', event => event.preventDefault());
  box.form.addEventListener('reset', () => { brush = range = null; paint(); setTimeout(show); });

  // A link to an address filters by it; a page can be opened with a filter.
  const follow = () => {
    let hash = location.hash.slice(1);
    try { hash = decodeURIComponent(hash); } catch { /* It is no encoding: as it is. */ }
    if (/^(ip|port|sni|proto):/.test(hash)) {
      box.value = hash;
      show();
      box.scrollIntoView({ block: 'nearest' });
    }
  };
  addEventListener('hashchange', follow);

  // An address as text that is in the order of addresses, IPv4 before IPv6.
  const rank = text => {
    const four = number(text);
    if (four !== null) return `4${four.toString(16).padStart(8, '0')}`;
    const groups = part => part ? part.split(':') : [];
    const [head, tail] = text.split('::').map(groups);
    const zeros = tail ? Array(8 - head.length - tail.length).fill('0') : [];
    return `6${[...head, ...zeros, ...tail ?? []].map(group => group.padStart(4, '0')).join('')}`;
  };

  // Sorting, stable, by numbers where there are any, and by addresses with their ports.
  const value = (row, column) => {
    const cell = row.cells[column], text = cell.dataset.v ?? cell.textContent;
    const first = cell.firstElementChild;
    if (first?.matches('a')) {
      const port = cell.querySelector('i')?.textContent.replace(':', '') ?? '';
      return rank(first.textContent) + port.padStart(6, '0');
    }
    const plain = Number(text.replaceAll(',', ''));
    return text.trim() === '' ? -1 : Number.isNaN(plain) ? text.toLowerCase() : plain;
  };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === 'number' ? -1 : 1;
  all('thead button').forEach(button => button.addEventListener('click', () => {
    const head = button.parentElement, body = head.closest('table').tBodies[0];
    const first = head.classList.contains('r') ? 'descending' : 'ascending';
    const other = first === 'ascending' ? 'descending' : 'ascending';
    const order = head.getAttribute('aria-sort') === first ? other : first;
    all('[aria-sort]', head.parentElement).forEach(old => old.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', order);
    const sign = order === 'ascending' ? 1 : -1;
    const keyed = [...body.rows].map(row => [value(row, head.cellIndex), row]);
    keyed.sort((a, b) => sign * compare(a[0], b[0]));
    body.append(...keyed.map(([, row]) => row));
  }));

  // A number shows its command without this script; with it the command is copied, too.
  const say = text => {
    said.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { said.textContent = ''; }, 8000);
  };
  document.addEventListener('click', event => {
    const key = event.target.closest('.k');
    if (!key) return;
    const command = key.nextElementSibling.textContent;
    navigator.clipboard?.writeText(command).then(() => say('Copied.'), () => {});
  });

  // The brush: whole bins, by the mouse, a finger or the keyboard.
  const paint = () => {
    const mark = time?.querySelector('.brush');
    if (!mark) return;
    mark.hidden = !brush;
    if (!brush) { one('from').textContent = ''; return; }
    const { first, width, bins } = scale;
    const [from, to] = brush.map(at => Math.min(Math.max((at - first) / width, 0), bins) / bins * 100);
    mark.style.left = `${from}%`;
    mark.style.width = `${to - from}%`;
    const text = at => new Date(scale.begin + at).toISOString().replace('T', ' ').slice(0, 23);
    one('from').textContent = `Selected: ${text(brush[0])} to ${text(brush[1])} UTC. Esc ends it.`;
  };
  const scale = time && {
    first: Number(time.dataset.first), width: Number(time.dataset.width), bins: Number(time.dataset.bins),
    begin: Number(time.dataset.begin),
  };
  if (time) {
    let start = null;
    const bin = event => {
      const area = time.getBoundingClientRect();
      const at = Math.floor((event.clientX - area.left) / area.width * scale.bins);
      return Math.min(Math.max(at, 0), scale.bins - 1);
    };
    const set = (a, b) => {
      range = [Math.min(a, b), Math.max(a, b)];
      brush = [scale.first + range[0] * scale.width, scale.first + (range[1] + 1) * scale.width];
      paint();
    };
    const clear = () => { brush = range = null; paint(); show(); };
    time.addEventListener('pointerdown', event => {
      if (event.button) return;
      start = bin(event);
      time.setPointerCapture(event.pointerId);
      set(start, start);
    });
    time.addEventListener('pointermove', event => { if (start !== null) set(start, bin(event)); });
    time.addEventListener('pointerup', () => { start = null; show(); });
    time.addEventListener('pointercancel', () => { start = null; clear(); });
    time.addEventListener('dblclick', clear);
    time.addEventListener('keydown', event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === 'Escape') return clear();
      if (!step) return;
      event.preventDefault();
      const [a, b] = range ?? [0, Math.max(0, Math.round(scale.bins / 10) - 1)];
      const last = scale.bins - 1, clamp = at => Math.min(Math.max(at, 0), last);
      if (event.shiftKey) set(a, clamp(Math.max(a, b + step)));
      else if (range && (a + step < 0 || b + step > last)) return;
      else if (range) set(a + step, b + step);
      else set(a, b);
      show();
    });
  }
  follow();
})();
