// SPDX-License-Identifier: MIT
// The monitor's page. First what is shown: functions from data to elements; data only ever becomes text.
// Then what happens: addresses, calls, the live stream, verbs, keys.

// --- elements: h() describes them, patch() changes what differs, so that focus and scroll survive.
const SVG = 'http://www.w3.org/2000/svg';
function h(spec, props, ...kids) {
	const [tag, ...classes] = spec.split('.');
	if (props?.constructor !== Object || props.tag) {
		kids.unshift(props);
		props = {};
	}
	if (classes.length) props = { ...props, class: [...classes, props.class || ''].join(' ') };
	return { tag, props, kids };
}
function setProperty(el, name, value) {
	if (name === 'key') el.rowKey = value;
	else if (name.startsWith('on') || /^(value|checked|disabled|indeterminate)$/.test(name)) el[name] = value ?? null;
	else if (value == null || value === false) el.removeAttribute(name);
	else el.setAttribute(name, value);
}
function update(el, v) {
	const old = el.shown?.props || {};
	if (el.shown === v) return;
	for (const name in old) if (!(name in v.props)) setProperty(el, name, null);
	patch(el, v.kids);
	for (const name in v.props) if (old[name] !== v.props[name]) setProperty(el, name, v.props[name]);
	el.shown = v;
}
function patch(parent, tree) {
	const kids = [tree].flat(9).filter((k) => k || k === 0);
	const keys = new Set(kids.map((k) => k.props?.key));
	const keyed = new Map([...parent.childNodes].map((n) => [n.rowKey, n]));
	let at = parent.firstChild;
	const drop = () => {
		const gone = at;
		at = at.nextSibling;
		gone.remove();
	};
	for (const kid of kids) {
		// What leaves goes first: moving another node over it would take the focus away.
		while (at?.rowKey != null && !keys.has(at.rowKey)) drop();
		const key = kid.props?.key;
		let node = key != null ? keyed.get(key) : at?.rowKey == null ? at : null;
		if (!kid.tag) {
			if (node?.nodeType !== 3) node = document.createTextNode('');
			if (node.data !== `${kid}`) node.data = kid;
		} else {
			if (node?.localName !== kid.tag)
				node = kid.tag === 'svg' || parent.namespaceURI === SVG ? document.createElementNS(SVG, kid.tag)
					: document.createElement(kid.tag);
			update(node, kid);
		}
		if (node === at) at = at.nextSibling;
		else parent.insertBefore(node, at);
	}
	while (at) drop();
}

// --- words and numbers
const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const num = (n) => (n == null ? '–' : numbers.format(n));
const many = (n, word) => `${num(n)} ${word}${n === 1 ? '' : 's'}`;
const count = (n) => num(n.n) + (n.capped ? '+' : '');
const add = (list) => list.reduce((a, b) => ({ n: a.n + b.n, capped: a.capped || b.capped }), { n: 0 });
const bytes = (n) => (n < 1e3 ? `${n} B` : n < 1e6 ? `${num(n / 1e3)} kB` : `${num(n / 1e6)} MB`);
const clamp = (n, top) => Math.max(0, Math.min(top, n));
const pad = (n) => `${n}`.padStart(2, '0');
const clip = (text, n) => (text.length > n ? text.slice(0, n) + '…' : text);

// Microseconds to "12m 03s".
function age(us) {
	const s = Math.floor(us / 1e6);
	const two = (size, of, units) => `${Math.floor(s / size)}${units[0]} ${pad(Math.floor((s % size) / of))}${units[1]}`;
	return us < 1e6 ? `${Math.max(0, Math.round(us / 1e3))}ms` : s < 60 ? `${s}s` : s < 3600 ? two(60, 1, 'ms') : s < 86400
		? two(3600, 60, 'hm') : two(86400, 3600, 'dh');
}
// Local time; with its date when it is far.
function clock(t) {
	const d = new Date(t / 1000);
	const text = new Date(d - d.getTimezoneOffset() * 6e4).toISOString().replace('T', ' ');
	return text.slice(Math.abs(now() - t) < 43200e6 ? 11 : 0, 19);
}
const time = (t, text) => h('time', { title: new Date(t / 1000).toISOString() }, text);
const when = (t) => (t == null ? '–' : time(t, clock(t)));
const ago = (t) => (t == null ? '–' : time(t, age(now() - t)));

// One line of foreign text: control and direction characters become visible and harmless.
const HIDDEN = /[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const reveal = (ch) => {
	const n = ch.charCodeAt(0);
	return n < 32 ? String.fromCharCode(0x2400 + n) : `\\u${n.toString(16).padStart(4, '0')}`;
};
const plain = (text) => `${text ?? ''}`.replace(HIDDEN, reveal);
const plainLines = (text) => text.replace(HIDDEN, (ch) => (/[\n\t]/.test(ch) ? ch : reveal(ch)));

// --- pieces
const st = (kind, text = kind) => h('span.st', { class: kind }, text);
const mono = (text, n = 160) => text && h('span.mono', { title: text.length > n && clip(plain(text), 2000) }, clip(plain(text), n));
const empty = (text, more) => h('p.empty', text, more && h('span', more));
const copy = (text, label = 'Copy') => h('button.small', { type: 'button', onclick: () => copyText(text),
	'aria-label': `${label} ${clip(plain(text), 60)}` }, label);
const command = (line) => h('div.command', { key: line }, h('code', plain(line)), copy(line));
const section = (name, tools, ...kids) => h('section', { 'aria-label': name }, h('div.head', h('h2', name), tools), kids);
const title = (text, ...more) => h('div.title', h('h1', { tabindex: -1 }, text), more);
const messageLink = (id, reader, text = `${id.slice(0, 8)}…${id.slice(-4)}`) => h('a.mono.open', { href: href(`messages/${id}`,
	{ reader }) }, text);

// How a value is written; the kinds in NUMERIC stand at the right.
const KINDS = {
	text: plain, num, when, ago, mono, count,
	iso: (text) => when(text && Date.parse(text) * 1000),
	some: (n) => (n ? num(n) : ''),
	bold: (v) => h('b', clip(plain(v), 80)),
	long: (v) => mono(v),
	state: (v) => st(v),
	keep: (ms) => (ms == null ? 'for ever' : age(ms * 1000)),
	rate: (v) => [num(Math.round(v || 0)), h('small', ' /s')],
};
const NUMERIC = /^(num|some|when|iso|ago|count|rate)$/;
const column = (spec) => {
	if (spec.map) return spec;
	const [name, path, kind = 'text'] = spec.split(':');
	return [name, (row) => KINDS[kind]((path || name).split('.').reduce((o, k) => o?.[k], row)), NUMERIC.test(kind) ? 'n' : kind];
};
const facts = (row, ...specs) => h('dl', specs.map((spec) => {
	const [name, cell] = column(spec);
	const v = cell(row);
	return v && v !== '–' && [h('dt', { key: name }, name), h('dd', { key: `=${name}` }, v)];
}));
// Columns are 'title:field:kind' (the field is the title unless it is told) or [title, cell of a row, class]; narrow screens show each row as a card.
function table(label, columns, rows, { key = (r, i) => i, open, below, ...more } = {}) {
	const all = columns.map((spec) => column(spec));
	return h('table', more, h('caption.vh', label),
		h('thead', h('tr', all.map(([name, , kind]) => h('th', { scope: 'col', class: kind !== 'mono' && kind }, name)))),
		h('tbody', rows.map((row, i) => [
			h('tr', { key: key(row, i), tabindex: open && -1, class: row.gone ? 'gone' : open && picked.has(key(row)) && 'picked' },
				all.map(([name, cell, kind]) => h('td', { class: kind, 'data-label': name.tag ? '' : name }, cell(row)))),
			below?.(row)])));
}
// The list of the page: keyed rows that can be opened and, with `pick` (what a row is called), chosen.
const rowsOf = () => data[PAGES[page].list];
const chosenRows = () => rowsOf().filter((r) => picked.has(PAGES[page].key(r)));
function list(label, word, none, columns, { name, below } = {}) {
	const { key } = PAGES[page];
	const keys = rowsOf().filter((r) => !r.gone).map(key);
	const all = keys.every((k) => picked.has(k));
	const box = (text, props) => h('label.pick', h('span.vh', text), h('input', { type: 'checkbox', ...props }));
	const picker = can && name && [box('Select all', { checked: all, indeterminate: !all && picked.size, onchange: () => pick(keys,
		!all) }),
		(row) => box(`Select ${name(row)}`, { checked: picked.has(key(row)), disabled: row.gone, onchange: () => pick([key(row)]) }),
			'pickcell'];
	return [h('div.newbar', { role: 'status' }, fresh && h('button', { onclick: adopt }, `${many(fresh.count, `new ${word}`)}: show`)),
		rowsOf().length ? table(label, [...(picker ? [picker] : []), ...columns], rowsOf(), { key, below, open: true }) : empty(...none)];
}

const capital = (v) => v[0].toUpperCase() + v.slice(1);
const verbButtons = (text, target, allowed = ['retry', 'skip', 'discard']) => can && allowed.map((v) =>
	h('button', { key: v, class: v === 'discard' && 'danger', onclick: () => verb(v, target()) }, `${capital(v)}${text}…`));
const toolbar = (text, ...kids) => can && h('div.toolbar', { role: 'toolbar', 'aria-label': 'Verbs' }, h('span', text), kids);

// Links of which one is the current choice; the first stands for no choice.
const choice = (label, name, options, text = plain) => h('div.choice', { role: 'group', 'aria-label': label },
	options.split(' ').map((value, i) =>
	h('a', { key: value, href: here({ [name]: i ? value : null, before: null, open: null }),
		'aria-current': value === (q.get(name) || options.split(' ')[0]) && 'true' }, text(value))));
const pager = (d, ...more) => h('div.pager', q.get('before') && h('a.button', { href: here({ before: null }) }, 'Newest'), more, d.next
	&& more.length < 2 && h('a.button', { href: here({ before: d.next }) }, 'Older'));

const inScope = (r) => ['store', 'reader'].every((name) => !q.get(name) || r[name] === q.get(name));
function scope() {
	const value = (r) => `${r.store || ''}\n${r.reader || ''}`;
	return state.readers.length > 1 && (state.stores.length > 1 || /reader/.test(PAGES[page].takes)) && h('label.scope', 'Relay ',
		h('select', { value: value(state.readers.find((r) => r.reader === (q.get('reader') || (page === 'messages' && data?.reader))
		&& inScope(r)) || {}), onchange: (e) => {
		const [store, reader] = e.target.value.split('\n');
		go(here({ store: reader && store, reader, before: null }));
	} }, page !== 'messages' && h('option', { key: 'all', value: '\n' }, 'all'), state.readers.map((r) => h('option', { key: value(r),
		value: value(r) }, state.stores.length > 1 ? `${plain(r.store)}: ` : '', plain(r.reader)))));
}

// --- overview
const SINK = { open: 'down', half_open: 'probing' };
const sinkState = (s) => {
	const name = SINK[s.state] || s.state;
	return [st(name), SINK[s.state] && s.since_us && [' ', ago(s.since_us)]];
};
const worst = (r) => (r.sink_state.state === 'open' ? 8 : 0) + (r.left ? 4 : 0) + (r.counts.dead.n ? 2 : 0) + (r.counts.failed.n ? 1 : 0);
const readersOf = () => state.readers.filter(inScope).sort((a, b) => worst(b) - worst(a));
const relayTable = (rs, ...more) => (rs.length ? table('Relays', [
	['relay', (r) => h('a', { href: href('relays', { store: r.store, reader: r.reader }) }, plain(r.reader))],
	'sink',
	['state', (r) => (r.left ? st('down', 'nobody runs it') : sinkState(r.sink_state))],
	'oldest due:oldest_due_us:ago', 'waiting:counts.pending:count', 'failing:counts.failed:count', 'dead:counts.dead:count',
		'rate::rate', ...more], rs)
	: empty('No relay has read this log yet.', 'Start one with outbox work.'));

const lateness = (rs) => Math.max(0, ...rs.map((r) => r.oldest_due_us && now() - r.oldest_due_us));
function cards(rs) {
	const total = (name) => add(rs.map((r) => r.counts[name]));
	const sum = (name) => rs.reduce((a, r) => a + (r[name] || 0), 0);
	const late = lateness(rs);
	const dead = total('dead');
	const failed = total('failed');
	const card = (name, value, say, path, wanted, bad) => h('a.card', { key: name, href: href(path, { state: wanted }), class: bad },
		h('span.name', name), h('span.value', value), h('span.say', say));
	return h('div.cards',
		card('oldest due', late ? age(late) : '0s', late ? 'age of the oldest message that waits' : 'no message waits', 'messages',
			'pending', late > 300e6 ? 'error' : late > 60e6 && 'warning'),
		card('waiting', count(total('pending')), `not yet sent · ${count(total('delayed'))} more are delayed on purpose`, 'messages',
			'pending'),
		card('rate now', KINDS.rate(sum('rate')), `published a second · ${num(sum('published_hour') / 3600)} on average`, 'relays'),
		card('failing', count(failed), `will be tried again · ${count(total('parked'))} parked after them`, 'failures', 'failed', failed.n
			&& 'warning'),
		card('dead', count(dead), dead.n ? `wait for a decision · ${count(add(rs.map((r) => r.held_keys)))} keys held`
			: 'none waits for a decision', 'failures', 'dead', dead.n && 'error'),
		card('published', num(sum('published_hour')), `in the last hour · ${many(sum('failed_hour'), 'failed attempt')}`, 'messages',
			'published'));
}
function chart() {
	const minutes = +q.get('minutes') || 60;
	const end = Math.floor(now() / 60e6);
	const at = new Map(data?.points.map((p) => [Math.floor(p.minute_us / 60e6), p]));
	const points = Array.from({ length: minutes }, (_, i) => ({ published: 0, failed: 0, ...at.get(end - minutes + 1 + i),
		m: end - minutes + 1 + i }));
	const peak = Math.max(1, ...points.map((p) => Math.max(p.published, p.failed)));
	const unit = 10 ** Math.floor(Math.log10(peak));
	const top = unit * Math.ceil(peak / unit);
	const H = 160;
	const step = 1440 / minutes;
	const y = (n) => Math.round(H - (n / top) * H);
	const line = points.map((p, i) => `${i ? 'L' : 'M'}${i * step} ${y(p.published)}h${step}`).join('');
	const bars = points.map((p, i) => (p.failed ? `M${i * step} ${H}V${Math.min(H - 3, y(p.failed))}h${step}V${H}z` : '')).join('');
	const i = ui.minute ?? minutes - 1;
	const label = (p) => clock(p.m * 60e6).slice(0, -3);
	const read = `${num(points[i].published)} published, ${num(points[i].failed)} failed`;
	const move = (to) => transient({ minute: clamp(to, minutes - 1) });
	const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -minutes, End: minutes };
	const shown = q.get('table');
	return section('Throughput', [choice('Time shown', 'minutes', '60 360 1440', (m) => `${m / 60} h`),
		h('a.small.button', { href: here({ table: shown ? null : 1 }), 'aria-expanded': `${!!shown}`, role: 'button' }, 'Table')],
	h('p.legend', h('span.key', 'published'), h('span.key.failed', 'failed attempts'), ' per minute', h('span.read',
		h('b', label(points[i])), ` ${read}`)),
	h('div.chart', h('span.top', { 'aria-hidden': true }, num(top)),
		h('div.plot', { role: 'slider', tabindex: 0, 'aria-label': 'Throughput by minute', 'aria-valuemin': 0, 'aria-valuemax': minutes - 1,
			'aria-valuenow': i, 'aria-valuetext': `${label(points[i])}: ${read}`,
			onmousemove: (e) => move(Math.floor(e.offsetX / e.currentTarget.clientWidth * minutes)),
			onmouseleave: () => transient({ minute: null }),
			onkeydown: (e) => e.key in keys && (e.preventDefault(), move((ui.minute ?? i) + keys[e.key])) },
		h('svg', { viewBox: `0 0 1440 ${H}`, preserveAspectRatio: 'none', 'aria-hidden': true },
			h('path.grid', { d: `M0 ${H / 2}H1440M0 .5H1440M0 ${H}H1440` }), h('path.area', { d: `${line}V${H}H0z` }), h('path.line',
				{ d: line }), h('path.bars', { d: bars }),
			h('rect.at', { x: i * step, y: 0, width: step, height: H }))),
		h('div.axis', { 'aria-hidden': true }, h('span', label(points[0])), h('span', label(points[minutes >> 1])), h('span', 'now'))),
	shown && table('Throughput by minute', [['minute', label], 'published::num', 'failed::num'],
		points.filter((p) => p.published || p.failed).reverse(), { class: 'plain' }));
}
function overview() {
	const rs = readersOf();
	const errors = state.errors.filter(inScope);
	const alerts = [...state.stores.filter((s) => !s.ok).map((s) => ({ level: 'error', text: `store ${s.name}: ${s.error}`,
		href: 'doctor' })), ...state.alerts];
	return [h('h1.vh', { tabindex: -1 }, 'Overview'),
		alerts.length ? h('ul.alerts', { 'aria-label': 'Alerts' }, alerts.map((a, i) => h('li.alert', { key: i, class: a.level },
			st(a.level), h('span', plain(a.text)), a.href && h('a', { href: a.href }, 'show'))))
			: lateness(rs) < 60e6 && !rs.some(worst) && h('p.alert.ok', st('ok', 'all is well'),
				h('span', 'Nothing is late, failing or dead.')),
		cards(rs), chart(),
		h('div.two', section('Relays', null, relayTable(rs)),
			section('Last errors', null, errors.length ? table('Last errors', ['last:at_us:when', 'relay:reader', 'kind',
				['error', (e) => [mono(e.text), e.count > 1 && h('small', ` ×${num(e.count)}`)], 'long']], errors)
				: empty('No error is known.', 'Errors of sinks and stores appear here.')))];
}

// --- failures
function failures() {
	const chosen = chosenRows();
	const messages = chosen.reduce((a, g) => a + g.count, 0);
	const target = (gs) => gs.map((g) => ({ store: data.store, reader: g.reader, group: g.group }));
	const open = q.get('open');
	const what = (g) => [g.event_type && h('b', plain(g.event_type)), g.key && mono(g.key), g.cause && mono(g.cause), !g.event_type
		&& !g.key && !g.cause && plain(g.sink || g.reader)];
	const columns = [
		['messages', (g) => num(g.count), 'n big'],
		['state', (g) => [g.states.failed > 0 && [st('failed', `${num(g.states.failed)} failed`), ' '], g.states.dead > 0
			&& st('dead', `${num(g.states.dead)} dead`), g.gone && st('ok', 'no longer')]],
		['what', (g) => h('a.open', { href: here({ open: open === g.group ? null : g.group }), 'aria-expanded': `${open === g.group}`,
			role: 'button' }, what(g)), 'long'],
		['relay', (g) => plain(g.reader) + (g.sink && g.sink !== g.reader ? ` → ${plain(g.sink)}` : '')],
		'first::iso', 'last::iso', 'next try:next_due:iso',
		['holds', (g) => (g.keys_held ? `${many(g.keys_held, 'key')}, ${num(g.parked)} parked` : '–')],
	];
	const below = (g) => open === g.group && h('tr.below', { key: `${g.group}+` }, h('td', { colspan: 9 },
		g.cause && h('pre.cause', plainLines(g.cause)),
		h('p', 'Examples: ', g.sample.map((id) => [messageLink(id, g.reader), ' ']), ' · ',
			h('a', { href: href('messages', { reader: g.reader, type: g.event_type, key: g.key, state: ['failed',
				'dead'].filter((s) => g.states[s]).join() }) }, 'messages like these')),
		h('p.verbs', verbButtons(` ${num(g.count)}`, () => target([g])), copy(g.sample.join('\n'), 'Copy ids'))));
	ui.target = target;
	return [title('Failures', choice('Group by', 'by', 'cause type relay sink key', (by) => `by ${by}`), choice('State', 'state',
		'all failed dead')),
		toolbar(messages ? `${many(chosen.length, 'group')}, ${many(messages, 'message')}` : 'Select groups to act on them', messages > 0
			&& verbButtons(` ${num(messages)}`, () => target(chosen))),
		list('Failed and dead messages in groups', 'group', ['Nothing is failing.', 'Failed and dead messages appear here in groups.'],
			columns, { below, name: (g) => clip(plain(g.cause || g.event_type || g.key || g.reader), 80) }),
		data.capped && h('p.note', `The newest ${num(data.scanned)} failures were read; there are more.`)];
}

// --- messages
const WORDS = { id: 'id', key: 'key', type: 'type', state: 'state', corr: 'correlation', error: 'error', aggregate: 'aggregate_type',
	aggregate_id: 'aggregate_id' };
const UUID = /^[0-9a-f]{8}-[0-9a-f-]{1,27}$/i;
// "key:order:1 state:dead" to parameters of the API; quotes keep spaces together, a bare word is a key.
function parseSearch(text) {
	const found = {};
	for (const [, word, quoted, bare] of text.matchAll(/(?:(\w+):)?(?:"([^"]*)"|(\S+))/g)) {
		const value = quoted ?? bare;
		if (WORDS[word]) found[WORDS[word]] = value;
		else found[!word && UUID.test(value) ? 'id' : 'key'] = word ? `${word}:${value}` : value;
	}
	return found;
}
const formatSearch = (q) => Object.entries(WORDS).filter(([, name]) => q.get(name)).map(([word, name]) =>
	`${word}:${/\s/.test(q.get(name)) ? `"${q.get(name)}"` : q.get(name)}`).join(' ');

const RANK = 'dead failed parked pending delayed published discarded'; // the worst first
function messages() {
	const d = data;
	const s = d.searched;
	const chosen = chosenRows();
	const whose = { store: d.store, reader: d.reader };
	const filter = { state: q.get('state')?.split(','), event_type: q.get('type') };
	for (const name of ['key', 'aggregate_type', 'aggregate_id', 'correlation', 'error']) filter[name] = q.get(name);
	for (const name in filter) if (!filter[name]) delete filter[name];
	const filtered = Object.keys(filter).length > 0;
	ui.target = (rows) => [{ ...whose, ids: rows.map((m) => m.id) }];
	return [title('Messages', choice('State', 'state', `all ${RANK}`)),
		toolbar(chosen.length ? `${many(chosen.length, 'message')} selected` : 'Select messages to act on them',
			chosen.length ? verbButtons(` ${num(chosen.length)} selected`, () => ui.target(chosen)) : filtered
				&& verbButtons(' all that match', () => [{ ...whose, filter }])),
		list('Messages', 'message', filtered || q.get('id') ? ['No message matches.', 'Try further back, or fewer words.']
			: ['The log has no messages.', 'The first outbox push makes one.'],
			['created:created_us:when', ['message', (m) => messageLink(m.id, m.reader)], 'state::state', 'type:event_type:bold',
				'key::mono', 'relay:reader', 'attempts::some', 'last error:last_error:long'], { name: (m) => m.id }),
		pager(d, h('span.note', s.complete ? 'The log was searched to its beginning.' : `Searched ${num(s.rows)} rows so far.`),
			...(ui.searching ? [h('button', { onclick: () => ui.searching.abort() }, 'Stop searching')] : d.next
				&& (d.messages.length < (q.get('limit') || 50) || ui.further) ? [h('button', { onclick: further }, 'Search further back')]
				: []))];
}

// --- one message
// The JSON text with line breaks: a lexer, so that every number, escape and repeated name stays as it is stored.
function pretty(text) {
	const out = [];
	let run = '';
	let depth = 0;
	const line = (by) => {
		depth = Math.max(0, depth + by);
		run += '\n' + '  '.repeat(Math.min(depth, 32));
	};
	for (const { 0: t, index } of text.matchAll(/"[^"\\]*(?:\\[^][^"\\]*)*"?|-?\d[\w.+-]*|\w+|[[{]\s*[\]}]|\S/g)) {
		if (/^["\w-]/.test(t)) {
			const after = index + t.length;
			out.push(run, h(t[0] === '"' ? (/^\s*:/.test(text.slice(after, after + 40)) ? 'span.jk' : 'span.js') : /^[-\d]/.test(t)
				? 'span.jn' : 'span.jl', plain(t)));
			run = '';
		} else if (/^[}\]]/.test(t)) {
			line(-1);
			run += t;
		} else {
			run += t === ':' ? ': ' : plain(t.replace(/\s/g, ''));
			if (/^[[{,]$/.test(t)) line(t === ',' ? 0 : 1);
		}
	}
	return [...out, run];
}
function hex(data) {
	let out = '';
	for (let i = 0; i < data.length; i += 16) {
		const row = [...data.subarray(i, i + 16)];
		out += `${i.toString(16).padStart(8, '0')}  ${row.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '.')).join('')}\n`;
	}
	return out;
}
const pre = (label, ...kids) => h('pre.payload', { key: label, tabindex: 0, role: 'region', 'aria-label': label }, kids);
let last = {};
// Made once for each payload: it may be long.
function payload(m, as) {
	if (last.text === m.payload && last.id === m.id && last.as === as) return last.shown;
	const raw = m.payload_base64 != null ? Uint8Array.from(atob(m.payload_base64), (ch) => ch.charCodeAt(0))
		: new TextEncoder().encode(m.payload);
	const text = m.payload ?? new TextDecoder().decode(raw);
	last = { id: m.id, text: m.payload, as, shown: pre(`Payload, ${as}`, as === 'hex' ? hex(raw.subarray(0, 65536)) : as === 'pretty'
		&& m.payload_json ? pretty(text.slice(0, 131072)) : plainLines(text)) };
	return last.shown;
}
function message() {
	const { message: m, key, store } = data;
	const readers = data.readers.sort((a, b) => RANK.indexOf(a.state) - RANK.indexOf(b.state));
	const as = q.get('as') || 'pretty';
	const mine = readers.find((r) => r.reader === q.get('reader')) || readers[0];
	const shown = m.payload_mode !== 'hidden' && m.payload_bytes != null;
	const filter = (name, v) => [name, () => v && h('a.mono', { href: href('messages', { [name]: v }) }, plain(v))];
	const steps = [['created', m.created_us], m.available_us > m.created_us && ['available', m.available_us],
		...(mine ? [[mine.state, mine.published_us || mine.since_us], ['next try', mine.due_us]] : [])].filter((s) => s[1]).sort((a,
		b) => a[1] - b[1]);
	ui.target = () => [{ store, reader: mine.reader, ids: [m.id] }];
	return [title(['Message ', h('span.mono', m.id)], mine && st(mine.state)),
		mine && toolbar(readers.length > 1 ? `for ${plain(mine.reader)}` : mine.verbs.length ? 'Decide' : 'Nothing to decide',
			verbButtons('', ui.target, mine.verbs), copy(m.id, 'Copy id')),
		h('section.why', { 'aria-label': 'Why' }, readers.map((r) => h('p', { key: r.reader }, h('b', plain(r.reader)), ' ', st(r.state),
			' ', plain(r.why.text), r.why.link_id && [' ', messageLink(r.why.link_id, r.reader, 'go there')])),
			!mine && h('p', 'Nobody has ever read its target.')),
		h('ol.timeline', { 'aria-label': 'Timeline' }, steps.map(([name, t]) => h('li', { key: name, class: t > now() && 'ahead' },
			h('b', name), ' ', when(t)))),
		h('div.two',
			section('Payload', [shown && choice('Show as', 'as', 'pretty raw hex'), h('span.note', shown && bytes(m.payload_bytes),
				m.payload_mode === 'masked' && ', masked'),
				shown && m.payload_mode === 'shown' && h('a.small.button',
					{ href: `api/v1/messages/${m.id}/payload?store=${encodeURIComponent(store)}`, download: `${m.id}.bin` }, 'Download')],
			shown ? [payload(m, as), m.payload_cut && h('p.note', { key: 'cut' },
				'Only the beginning is shown; the download has all of it.')] : empty(m.payload_bytes == null ? 'No payload: a tombstone.'
				: 'Payloads are hidden from your role.')),
			h('div',
				section('Message', null, facts(m, 'type:event_type:bold', filter('key', m.key), ['in its key', () => key
					&& `${num(key.before)} before it, ${num(key.behind)}${key.capped ? '+' : ''} after it`],
					'aggregate:aggregate_type', ['aggregate id', () => (m.sequence_number ? streamLink({ type: m.aggregate_type, id: m.aggregate_id,
						target: m.target }) : plain(m.aggregate_id))], 'number in it:sequence_number:num', 'revision::some',
						'targets', 'partition::num', 'priority::some', 'number:seq:num', filter('correlation',
						m.correlation_id), 'causation:causation_id')),
				mine && section('Readers', null, table('Readers', [['reader', (r) => h('a', { href: here({ reader: r.reader }) },
					plain(r.reader))], 'state::state', 'attempts::num', 'due:due_us:when', 'published:published_us:when',
					'last error:last_error:long'], readers)),
				section('Headers', null, m.headers?.length > 2 ? pre('Headers as JSON', pretty(m.headers)) : empty('It has no headers.')),
				section('On the command line', null, ['show', 'why',
					...(mine?.verbs.slice(0, 1) || [])].map((verb) => command(`outbox ${verb} ${m.id}`)))))];
}

// --- keys, relays, doctor, audit
function keys() {
	const chosen = chosenRows();
	ui.target = (list) => list.map((k) => ({ store: data.store, reader: k.reader, ids: [k.head.id] }));
	return [title('Keys that are held'),
		toolbar(chosen.length ? many(chosen.length, 'key') : 'Select keys to act on what holds them', chosen.length > 0 && verbButtons('',
			() => ui.target(chosen))),
		h('p.note', 'A failed or dead message holds its key: later ones are parked until it is delivered, skipped or discarded.'),
		list('Keys that are held', 'key', ['No key is held.', 'Every key moves.'],
			[['key', (k) => h('a.open.mono', { href: href('messages', { key: k.key, reader: k.reader }) }, clip(plain(k.key), 80))],
			'relay:reader',
			['held by', (k) => messageLink(k.head.id, k.reader)], 'state:head.state:state', 'attempts:head.attempts:num',
				'held for:since_us:ago', 'next try:head.due_us:when', 'parked::num', 'last error:head.last_error:long'],
				{ name: (k) => k.key }),
		data.capped && h('p.note', 'There are more keys than are shown.')];
}
function partitionGrid() {
	const list = data.partitions;
	return [...new Set(list.map((p) => p.reader))].map((reader) => {
		const mine = list.filter((p) => p.reader === reader);
		return h('div', { key: reader }, h('h3', plain(reader),
			h('small', ` ${num(mine.filter((p) => p.leased).length)} of ${many(mine.length, 'partition')} owned`)),
			h('ul.squares', mine.map((p) => h('li', { key: p.partition, class: p.leased || 'free',
				title: `${p.label}: ${p.leased ? `${plain(p.hostname)} pid ${p.pid}, epoch ${p.epoch}` : 'nobody owns it'}, at ${num(p.position)}` },
				p.label, h('small', p.leased ? p.owner?.slice(-4) : 'free')))));
	});
}
function relays() {
	const d = data;
	const rs = readersOf();
	const ws = state.workers.filter(inScope).sort((a, b) => a.alive - b.alive);
	return [title('Relays'),
		section('Readers', null, relayTable(rs, 'lag::num', 'partitions::num', 'owned:leased:num', 'workers::num')),
		rs.length > 0 && section('Sinks', null, table('Sinks', ['sink', 'type:sink_type', ['state', (x) => sinkState(x.sink_state)],
			'in flight:sink_state.in_flight:num', 'next probe:sink_state.next_probe_us:when',
			['last error', (x) => mono(x.sink_state.why || x.sink_state.last_error), 'long']], rs)),
		section('Workers', null, ws.length ? table('Workers', [['worker', (w) => mono(`…${w.id.slice(-4)}`)], 'relay:reader', 'host',
			'pid', ['state', (w) => (w.alive ? st('ok', 'alive') : st('down', 'gone'))],
			'alive until:beat_us:when', 'up for:since_us:ago', 'partitions::num', 'rate::rate', 'in flight:in_flight:num',
				'version'], ws) : empty('No worker is alive.', 'Messages wait until one starts.')),
		section('Partitions', h('span.note', 'each square is a partition and its worker'), d.partitions.length ? partitionGrid()
			: empty('No partition has an owner yet.')),
		section('Retention', null, facts(d.retention, 'delivered are kept:published_ms:keep', 'dead are kept:dead_ms:keep',
			'runs every:every_ms:keep', 'held back by:held_by', 'since:held_since_us:when'),
			d.table_partitions.length > 0 && table('Table partitions', ['table partition:name:mono', 'from:from_seq:num', 'to:to_seq:num', 'state'],
				d.table_partitions, { class: 'plain' }))];
}
function doctor() {
	const d = data;
	const run = can && h('button', { onclick: runDoctor, disabled: ui.running }, ui.running ? 'Examining…' : 'Run now');
	if (!d) return [title('Doctor', run), empty('The doctor has not run yet.', 'It connects to stores and sinks and changes nothing.')];
	const of = (level) => d.findings.filter((f) => f.level === level);
	const rows = (list) => table('Findings', ['level::state', 'subject', ['finding', (f) => [plain(f.text), f.advice
		&& h('p.note', 'To do: ', plain(f.advice))], 'long'], 'check:code:mono'], list);
	const fine = of('ok');
	return [title('Doctor', run, h('span.note', `${many(d.errors, 'error')}, ${many(d.warnings, 'warning')}, ${num(fine.length)} ok, `,
		ago(d.at_us), ' ago')),
		d.errors + d.warnings ? rows([...of('error'), ...of('warning')]) : h('p.alert.ok', st('ok', 'all is well'),
			h('span', 'The doctor found nothing.')),
		h('details', h('summary', `${many(fine.length, 'check')} passed`), rows(fine))];
}
function audit() {
	return [title('Audit'), list('What operators did', 'line', ['Nobody has decided anything yet.',
		'Each retry, skip and discard is recorded here.'],
		['when:at_us:when', 'who', 'from:origin', 'verb::bold', 'relay:reader', 'messages:count:num', 'what:filter:long',
			'reason']), pager(data)];
}

// --- streams, consumers
const streamLink = (r) => h('a.open.mono', { href: href('stream', { type: r.type, id: r.id, target: r.target }) }, plain(r.id));
const streams = () => [title('Streams', h('span.note', data.complete ? 'of the whole log' : `of the newest ${num(data.searched)} messages; search for stream:TYPE/ID to see another`)),
	data.streams.length ? h('div.two', section('Categories', null, table('Categories', [['category', (c) => h('a', { href: here({ type: c.type }) },
		plain(c.type))], 'streams::num', 'events::num'], data.categories)),
		section('Streams', q.get('type') && h('a', { href: here({ type: null }) }, 'all'), table('Streams', [['stream', streamLink],
			'category:type', 'version::num', 'last event:event_type:bold', 'at:at_us:when'], data.streams)))
		: empty('There are no streams.', 'An append makes the first event of one.')];
const stream = () => [title(['Stream ', h('span.mono', `${plain(data.type)}/${plain(data.id)}`)]),
	table('Events', ['version::num', ['event', (e) => messageLink(e.id, null, plain(e.event_type))], 'revision::num',
		'created:created_us:when', ...data.readers.map((name, i) => [plain(name), (e) => st(e.states[i] || 'unknown')])], data.events),
	pager(data)];
function consumers() {
	const one = q.get('consumer');
	return [title('Consumers'), data.consumers.length ? table('Consumers', [
		['consumer', (c) => h('a.open', { href: here({ consumer: one ? null : c.consumer, before: null }) }, h('b', plain(c.consumer)))], 'source::mono',
		['state', (c) => [st({ ok: 'ok', held: 'dead', waiting: 'pending' }[c.status] || 'down', c.status), ' ', plain(c.trouble)], 'long'],
		'lag::num', ['oldest', (c) => (c.oldest_ms == null ? '–' : age(c.oldest_ms * 1e3)), 'n'], 'rate::rate', 'handled::num',
		'duplicates::num', 'keys held:held_keys:num', 'parked::num', 'dead::num'], data.consumers)
		: empty('No consumer has run here.', data.installed ? 'Start one with outbox consume.' : 'outbox setup --inbox makes its tables.'),
	one && [section('Processes', null, table('Processes', ['host:hostname', 'pid', ['state', (p) => st(p.alive ? 'ok' : 'down', p.has_lease ? 'works'
		: p.alive ? 'stands by' : 'gone')], 'since:started_at:iso', 'source:state.source_state', 'handler:state.handler_state',
		'last error:state.last_error:long'], data.consumers[0].processes)),
	section('Parked', null, data.letters.length ? table('Parked messages', ['since:since_us:when', 'message:id:mono', 'state::state',
		'type:event_type:bold', 'key::mono', 'attempts::num', 'next try:due_us:when', 'reason::long'], data.letters)
		: empty('Nothing is parked.'), data.next && h('a', { href: here({ before: data.next }) }, 'More')),
	section('On the command line', null, command(`outbox dlq retry ${one}`))]];
}

// The pages by their address. `view` shows what `call` answers to the parameters `takes`, asked again each 5 seconds (`once`: not).
// Of a list also: where it is in the answer, what tells rows apart, and whether a row that is missing now is gone.
const PAGES = {
	'': { name: 'Overview', view: overview, call: 'throughput', takes: 'store reader minutes' },
	failures: { view: failures, takes: 'store reader by state', list: 'groups', key: (g) => g.group },
	messages: { view: messages, takes: `store reader before limit ${Object.values(WORDS).join(' ')}`, list: 'messages', key: (m) => m.id,
		gone: (m, d) => !d.next || m.seq > d.messages.at(-1)?.seq },
	message: { view: message, call: 'messages/', takes: 'store' },
	keys: { view: keys, takes: 'store reader', list: 'keys', key: (k) => `${k.reader} ${k.partition} ${k.key}` },
	relays: { view: relays, call: 'partitions', takes: 'store reader' },
	streams: { view: streams, takes: 'store type' },
	stream: { view: stream, takes: 'store target type id before' },
	consumers: { view: consumers, takes: 'store consumer before' },
	doctor: { view: doctor, once: true, takes: '' },
	audit: { view: audit, takes: 'store before', list: 'entries', key: (e) => e.id, gone: () => false },
};
for (const path in PAGES) PAGES[path].name ||= capital(path);
const MENU = Object.entries(PAGES).filter(([path]) => !/^(message|stream)$/.test(path));

// --- what happens
const $ = (id) => document.getElementById(id);
const base = new URL(document.baseURI).pathname;
let state, got; // what the server said last, and when
let page, id, q, data, call, can; // where we are, its data and the call that has them
let fresh, problem, login, loading, loaded; // fresh: newer rows that wait behind "12 new"
let picked = new Set(), ui = {}, dialog;
const jobs = new Map(); // verbs that this tab started
const cache = new Map(); // what was seen elsewhere, for going back

// --- calls
async function api(path, body, signal) {
	const answer = await fetch(`api/v1/${path}`, { signal, ...(body && { method: 'POST', headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify(body) }) });
	const said = await answer.json().catch(() => null);
	if (answer.ok) return said;
	if (answer.status === 401 && !login) {
		login = true;
		stopLive();
		render();
	}
	throw Object.assign(new Error(said?.error?.message || `The server answered ${answer.status}.`), { status: answer.status });
}

// --- addresses: whatever is shown can be linked to
function address(path, params) {
	const out = new URLSearchParams();
	for (const name in params) if (params[name]) out.set(name, params[name]);
	return path + (`${out}` && `?${out}`);
}
const href = (path, params) => address(path || './', { store: q.get('store'), reader: page !== 'message' && q.get('reader'), ...params });
const here = (params) => address(location.pathname, { ...Object.fromEntries(q), ...params });
function parseAddress() {
	const [name, message] = location.pathname.slice(base.length).split('/');
	q = new URLSearchParams(location.search);
	id = message;
	page = name === 'messages' && id ? 'message' : name in PAGES ? name : '';
	const p = PAGES[page];
	const params = {};
	for (const k of p.takes.split(' ')) params[k] = q.get(k);
	if (page && state?.stores.length > 1) params.store ||= state.stores[0].name; // these calls want one
	if (page === 'messages' && state?.readers.length > 1) params.reader ||= readersOf()[0].reader;
	call = address((p.call || page) + (id || ''), params);
}
async function arrive(moved) {
	const before = call;
	parseAddress();
	if (before === call) return render();
	data = cache.get(call);
	fresh = problem = null;
	picked = new Set();
	ui = {};
	if (data) render();
	await load(true);
	if (moved) {
		scrollTo(0, 0);
		document.querySelector('h1')?.focus({ preventScroll: true });
	}
}
function go(to) {
	const before = location.pathname;
	history.pushState(null, '', new URL(to, document.baseURI));
	arrive(before !== location.pathname);
}

// --- data of a page; rows never move under the pointer: a newer list changes them where they are
function merge(now, { list, key, gone }) {
	const rows = new Map(now[list].map((r) => [key(r), r]));
	const shown = data[list].map((r) => rows.get(key(r)) || { ...r, gone: !gone || gone(r, now) });
	for (const r of shown) rows.delete(key(r));
	fresh = rows.size ? { now, count: rows.size } : null;
	return { ...now, next: data.next, searched: data.searched, [list]: shown };
}
async function load(adopt) {
	const p = PAGES[page];
	if (!adopt && (ui.further || live.paused)) return;
	loading?.abort();
	const mine = (loading = new AbortController());
	try {
		const now = await api(call, undefined, mine.signal);
		if (cache.size > 20) cache.clear();
		cache.set(call, now);
		if (adopt || !p.list || !data?.[p.list].length) {
			data = now;
			fresh = null;
		} else data = merge(now, p);
		problem = null;
	} catch (e) {
		if (e.name === 'AbortError') return;
		problem = e.message;
	}
	loading = null;
	loaded = Date.now();
	draw();
}

// --- live: of the tabs that are seen one holds the lock, and with it the stream; it tells the others
const LOCK = `outbox-live${base}`;
const channel = window.BroadcastChannel && new BroadcastChannel(LOCK);
const live = { status: 'connecting', paused: !!sessionStorage.paused };
let waiting, release, source, poll, broken = 0;

function receive(s, status, tell) {
	if (live.paused) return;
	live.status = status;
	if (tell) channel?.postMessage([s, status]);
	if (s) {
		state = s;
		got = Date.now();
	}
	if (!PAGES[page].once && !loading && !login && !document.hidden && Date.now() - loaded >= 5000) load();
	render();
}
if (channel) channel.onmessage = (e) => source || poll || receive(...e.data);
function openStream() {
	source = new EventSource('api/v1/events');
	source.addEventListener('state', (e) => {
		broken = 0;
		receive(JSON.parse(e.data), 'live', true);
	});
	source.onerror = () => {
		if (++broken < 2 && source.readyState < 2) return;
		closeStream();
		let times = 0;
		const ask = async () => {
			if (++times > 12) { // after a minute the stream may be back
				closeStream();
				return openStream();
			}
			receive(...await api('state').then((s) => [s, 'polling each 5 s'], () => [null, 'no answer']), true);
		};
		poll = setInterval(ask, 5000);
		ask();
	};
}
function closeStream() {
	source?.close();
	clearInterval(poll);
	source = poll = null;
}
function startLive() {
	if (document.hidden || live.paused || login || waiting) return;
	waiting = new AbortController();
	if (!navigator.locks || !channel) return openStream();
	navigator.locks.request(LOCK, { signal: waiting.signal }, () => new Promise((done) => {
		release = done;
		openStream();
	})).catch(() => {});
}
function stopLive() {
	waiting?.abort();
	closeStream();
	release?.();
	waiting = release = null;
}
document.addEventListener('visibilitychange', () => (document.hidden ? stopLive() : startLive()));
addEventListener('pagehide', stopLive);
addEventListener('pageshow', startLive);
setInterval(() => document.hidden || live.paused || render(), 5000);

function pause() {
	live.paused = !live.paused;
	sessionStorage.paused = live.paused ? 1 : '';
	if (live.paused) {
		live.at = now();
		stopLive();
	} else {
		startLive();
		load();
	}
	say(live.paused ? 'Paused: nothing is fetched' : 'Live again');
	render();
}
const now = () => (live.paused && live.at) || state.now_us + (Date.now() - got) * 1000;

// --- verbs: first a dry run, then exactly that
const VERBS = {
	retry: ['retried', 'They become due now, with all their attempts before them, and keep their place in their keys.'],
	skip: ['skipped', 'They become dead and are not sent; they can still be retried. What is parked after them goes on.'],
	discard: ['discarded', 'They are never delivered. This cannot be undone. What is parked after them goes on.'],
};
const jobText = (j) => `${num(j.done)} of ${many(j.total, 'message')} ${VERBS[j.verb][0]}${j.failed ? `, ${num(j.failed)} had changed` : ''}${j.state === 'stopped' ? ', stopped' : ''}${j.error ? `: ${plain(j.error)}` : ''}`;
// The event comes later than the closing: by then another dialog may be open.
$('dialog').onclose = () => { if (!$('dialog').open) dialog = null; };
function show(d) {
	dialog = d;
	drawDialog();
	$('dialog').showModal();
}
const close = () => $('dialog').close();
async function plan(d) {
	try {
		d.plans = await Promise.all(d.targets.map((t) => api('plans', { verb: d.verb, ...t })));
		d.count = d.plans.reduce((a, p) => a + p.count, 0);
	} catch (e) {
		d.error = e.message;
	}
	drawDialog();
}
function verb(name, targets) {
	const d = { verb: name, targets };
	show(d);
	plan(d);
}
async function run(d, reason) {
	d.busy = true;
	drawDialog();
	try {
		for (let last; d.plans.length && last !== 'stopped'; d.plans.shift(), d.targets.shift()) {
			const p = d.plans[0];
			if (!p.count) continue;
			const job = await api(`plans/${p.plan}/run`, { count: p.count, ...(reason && { reason }) });
			close();
			last = await follow(job);
		}
	} catch (e) {
		d.busy = false;
		d.error = e.message;
		if (e.status === 409) await plan(d); // the messages have changed: the new number
		if (dialog !== d) show(d);
		drawDialog();
	}
}
async function follow(j) {
	for (;;) {
		j = await api(`jobs/${j.job}`).catch((e) => ({ ...j, state: 'failed', error: e.message }));
		jobs.set(j.job, j);
		render();
		if (j.state !== 'running') {
			say(jobText(j));
			picked = new Set();
			load(true);
			return j.state;
		}
		await new Promise((done) => setTimeout(done, 300));
	}
}
function drawDialog() {
	const d = dialog;
	if (!d) return;
	const head = (text) => h('h2', { id: 'dialog-title' }, text);
	const buttons = (text, more) => h('div.verbs', { key: 'verbs' }, h('button', { type: 'button', onclick: close, autofocus: true }, text),
		more);
	if (d.help) return patch($('dialog'), [head('Keys'),
		h('dl', HELP.map(([k, text]) => [h('dt', k.split(' ').map((x) => [h('kbd', x), ' '])), h('dd', text)])), buttons('Close')]);
	const { plans, count } = d;
	const sample = plans?.flatMap((p) => p.sample).slice(0, 5);
	const typed = count >= 100;
	const refused = plans?.reduce((a, p) => a + p.refused, 0);
	const field = (label, name, more) => h('label.field', { key: name }, h('span', label), h('input', { type: 'text', name,
		autocomplete: 'off', maxlength: 200, ...more }));
	patch($('dialog'), [h('form', { onsubmit: (e) => (e.preventDefault(), run(d, e.target.reason.value)) },
		head(plans ? `${capital(d.verb)} ${many(count, 'message')}?` : `${capital(d.verb)}: counting…`),
		d.error && h('p.wrong', { role: 'alert', key: 'wrong' }, plain(d.error)),
		plans && h('p', { key: 'what' }, count ? VERBS[d.verb][1] : 'No message is in a state that allows it.', refused > 0
			&& ` ${many(refused, 'message')} more cannot: their state does not allow it.`),
		count > 0 && [table('Some of them', ['message:id:mono', 'state::state', 'type:event_type', 'key::mono'], sample),
			count > sample.length && h('p.note', { key: 'more' }, `and ${num(count - sample.length)} more`),
			plans.filter((p) => p.count).map((p) => command(p.command)), field('Reason, for the audit (may be empty)', 'reason'),
			typed && field(`Type ${count} to confirm`, 'typed', { inputmode: 'numeric', oninput: (e) => (d.typed = e.target.value,
				drawDialog()) })],
		buttons('Cancel', count > 0 && h('button.main', { class: d.verb === 'discard' && 'danger', disabled: d.busy || (typed
			&& d.typed !== `${count}`) }, `${capital(d.verb)} ${num(count)}`)))]);
}

// --- what views may do
const say = (text) => { $('say').textContent = text; };
async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch { // plain http has no clipboard
		const area = document.createElement('textarea');
		area.value = text;
		(document.querySelector('[open]') || document.body).append(area);
		area.select();
		document.execCommand('copy');
		area.remove();
	}
	say('Copied');
}
async function further() {
	const { signal } = (ui.searching = new AbortController());
	const before = data.messages.length;
	ui.further = true;
	render();
	try {
		while (data.next && data.messages.length === before) {
			const more = await api(address('messages', { ...Object.fromEntries(q), store: data.store, before: data.next }), undefined,
				signal);
			data = { ...more, messages: [...data.messages, ...more.messages], searched: { ...more.searched,
				rows: data.searched.rows + more.searched.rows } };
			render();
		}
	} catch (e) {
		if (e.name !== 'AbortError') problem = e.message;
	}
	ui.searching = null;
	render();
}
async function runDoctor() {
	ui.running = true;
	render();
	try {
		data = await api('doctor', {});
	} catch (e) {
		problem = e.message;
	}
	ui.running = false;
	render();
}
const adopt = () => {
	data = fresh.now;
	fresh = null;
	draw();
	$('main').focus({ preventScroll: true });
};
const pick = (keys, on) => {
	for (const k of keys) picked[on ?? !picked.has(k) ? 'add' : 'delete'](k);
	render();
};
const transient = (change) => {
	Object.assign(ui, change);
	render();
};

// --- the frame
function drawTop() {
	const theme = document.documentElement.dataset.theme;
	const silent = (Date.now() - got) * 1000;
	const fine = live.status === 'live' && silent < 10e6;
	patch($('top'), [
		h('a.vh', { href: '#main', onclick: (e) => (e.preventDefault(), $('main').focus()) }, 'Skip to the content'),
		h('a.brand', { href: './' }, 'outbox', !login && h('span', ` · ${plain(state.title)}`)),
		!login && [state.environment && h('span.badge', { class: /prod/i.test(state.environment) && 'prod' }, plain(state.environment)),
			h('form', { key: 'search', role: 'search', onsubmit: (e) => (e.preventDefault(), search(e.target.q.value)) },
				h('input', { type: 'search', name: 'q', id: 'search', value: page === 'messages' ? formatSearch(q) : '',
					'aria-label': 'Search messages', placeholder: 'Search: id, key: type: state: corr: error:', autocomplete: 'off',
					spellcheck: 'false' })),
			h('span.livestate', { key: 'live' }, h('span.st', { class: live.paused ? 'parked' : fine ? 'ok' : 'warning' }, live.paused
				? 'paused' : live.status + (silent > 10e6 ? `, silent ${age(silent)}` : ''))),
			h('button.small', { key: 'pause', 'aria-pressed': `${live.paused}`, onclick: pause }, 'Pause')],
		h('button.small', { key: 'theme', onclick: setTheme, title: 'Colours' }, capital(theme || 'auto')),
		!login && [h('button.small', { key: 'help', onclick: () => show({ help: true }), title: 'Keys' }, 'Help'), localStorage.signed
			&& h('button.small', { key: 'out', onclick: signOut }, `Sign out ${state.role}`)]]);
	const total = (f) => state.readers.reduce((a, r) => a + f(r), 0);
	const badge = !login && { failures: total((r) => r.counts.failed.n + r.counts.dead.n), keys: total((r) => r.held_keys.n) };
	patch($('nav'), login ? [] : [...MENU.map(([name, p]) =>
		h('a', { key: name, href: href(name), 'aria-current': (name === page || name === `${page}s`) && 'page' }, p.name, badge[name] > 0
			&& [' ', h('b', num(badge[name]))])), scope()]);
}
const loginForm = () => [h('section.login', { 'aria-label': 'Sign in' }, h('h1', { tabindex: -1 }, 'Sign in'),
	h('form', { onsubmit: async (e) => {
	e.preventDefault();
	try {
		await api('login', { token: e.target.token.value.trim() });
		localStorage.signed = 1;
		location.reload();
	} catch (x) {
		problem = x.message;
		render();
	}
} }, h('label.field', h('span', 'Token of a viewer or an operator'), h('input', { type: 'password', name: 'token',
	autocomplete: 'current-password', required: true })),
h('p.wrong', { role: 'alert' }, problem && plain(problem)), h('button.main', 'Sign in')))];
async function signOut() {
	await api('logout', {}).catch(() => {});
	localStorage.removeItem('signed');
	location.reload();
}

let drawn;
function render() {
	drawn ||= requestAnimationFrame(draw);
}
function draw() {
	cancelAnimationFrame(drawn);
	drawn = 0;
	drawTop();
	if (login) return patch($('main'), loginForm());
	can = state.role === 'operator';
	document.title = `${page && `${PAGES[page].name} · `}${plain(state.title)}${state.environment ? ` [${plain(state.environment)}]` : ''}`;
	patch($('main'), [problem && h('p.alert.error', { role: 'alert', key: 'problem' }, h('span.st.error', 'error'),
		h('span', plain(problem)), h('button.small', { onclick: () => load(true) }, 'Try again')),
		data !== undefined && PAGES[page].view()]);
	const all = new Map([...state.jobs.map((j) => [j.job, j]), ...jobs]);
	patch($('jobs'), [...all.values()].map((j) => h('div.job', { key: j.job }, h('span', jobText(j)),
		j.state !== 'running' ? h('button.small', { onclick: () => (jobs.delete(j.job), render()) }, 'Close')
			: can && h('button.small', { onclick: () => api(`jobs/${j.job}/stop`, {}).catch((e) => say(e.message)) }, 'Stop'),
		h('progress', { value: j.done / j.total || 0, 'aria-label': 'Progress' }))));
}
function search(text) {
	const found = parseSearch(text);
	const [, type, id] = /^stream:([^/]+)\/(.+)/.exec(text) || [];
	if (id) return go(href('stream', { type, id }));
	go(found.id?.length === 36 && Object.keys(found).length === 1 ? href(`messages/${found.id}`) : href('messages', found));
}
function setTheme() {
	const { dataset } = document.documentElement;
	const next = { dark: 'light', light: '' }[dataset.theme || ''] ?? 'dark';
	localStorage.theme = dataset.theme = next;
	render();
}

// --- keys
const HELP = [['/', 'search'], ...MENU.map(([, p]) => [`g ${p.name[0].toLowerCase()}`, p.name]), ['j k', 'next and previous row'],
	['x', 'select the row'], ['Enter', 'open the row'],
	['r', 'retry what is selected, or the row'], ['p', 'pause, go on'], ['Esc', 'leave a dialog, a field, a group'], ['?', 'this help']];
let went;
document.addEventListener('keydown', (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey || login || $('dialog').open) return;
	if (/^(INPUT|SELECT)$/.test(e.target.tagName) && e.target.type !== 'checkbox') return e.key === 'Escape' && e.target.blur();
	const rows = [...document.querySelectorAll('tr[tabindex]')];
	const row = document.activeElement.closest('tr[tabindex]');
	const step = (n) => rows[clamp(rows.indexOf(row) + n, rows.length - 1)]?.focus();
	const target = went && MENU.find(([, p]) => p.name[0].toLowerCase() === e.key);
	went = false;
	const act = target ? () => go(href(target[0])) : {
		'/': () => $('search').focus(),
		'?': () => show({ help: true }),
		g: () => { went = true; },
		j: () => step(1),
		k: () => step(-1),
		p: pause,
		x: () => row?.querySelector('input')?.click(),
		r: () => {
			const chosen = page === 'message' ? [0] : PAGES[page].list && rowsOf().filter((r) => (picked.size
				? picked.has(PAGES[page].key(r)) : row?.rowKey === PAGES[page].key(r)));
			if (can && ui.target && chosen.length) verb('retry', ui.target(chosen));
		},
		Enter: row === document.activeElement && (() => row.querySelector('a.open')?.click()),
		Escape: q.get('open') && (() => go(here({ open: null }))),
	}[e.key];
	if (!act) return;
	e.preventDefault();
	act();
});
document.addEventListener('click', (e) => {
	const a = e.target.closest?.('a[href]');
	if (!a || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || a.download || a.origin !== location.origin || !a.pathname.startsWith(base)) return;
	e.preventDefault();
	go(a.href);
});
addEventListener('popstate', () => arrive());

// --- start: the first data came with the page
const first = JSON.parse($('data')?.textContent || '{}');
document.documentElement.dataset.theme = localStorage.theme || '';
state = first.state;
got = loaded = Date.now();
login = !state;
if (!login) data = first.page ?? undefined;
parseAddress();
if (page === 'doctor') data ??= null;
draw();
if (!login && data === undefined) load(true);
startLive();
