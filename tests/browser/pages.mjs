// SPDX-License-Identifier: MIT
// Every page with no, little and much data; addresses, search, the chart, one message.
import assert from 'node:assert/strict';

export const PATHS = ['', 'failures', 'messages', 'keys', 'relays', 'streams', 'consumers', 'doctor', 'audit'];
const text = (page, selector) => page.locator(selector).first().innerText();
const rows = (page) => page.locator('main tbody tr[tabindex]');

export default [
	['an empty log says on every page that there is nothing', async ({ open, place }) => {
		const { url } = await place('none');
		const page = await open();
		const says = { '': 'No relay has read this log yet', failures: 'Nothing is failing', messages: 'The log has no messages',
			keys: 'No key is held', relays: 'No worker is alive', doctor: 'The doctor has not run yet',
			audit: 'Nobody has decided anything yet', streams: 'There are no streams', consumers: 'outbox setup --inbox' };
		for (const path of PATHS) {
			await page.goto(url + path);
			assert.ok((await text(page, 'main')).includes(says[path]), `${path}: ${await text(page, 'main')}`);
		}
	}],
	['a little data is shown on every page', async ({ open, place }) => {
		const { url } = await place('little');
		const page = await open();
		await page.goto(url);
		await page.getByText('0 more are delayed').waitFor();
		assert.equal(await page.locator('.card', { hasText: 'failing' }).locator('.value').innerText(), '1');
		assert.equal(await page.locator('.card', { hasText: 'dead' }).locator('.value').first().innerText(), '1');
		await page.goto(`${url}failures`);
		assert.equal(await rows(page).count(), 2);
		await page.goto(`${url}messages`);
		assert.equal(await rows(page).count(), 12);
		await page.goto(`${url}keys`);
		assert.equal(await rows(page).count(), 2);
		assert.match(await text(page, 'main'), /order:9000/);
		await page.goto(`${url}relays`);
		assert.equal(await page.locator('.squares li').count(), 16);
		assert.match(await text(page, 'main'), /alive/);
		await page.goto(`${url}doctor`);
		await page.getByRole('button', { name: 'Run now' }).click();
		await page.getByText(/checks? passed/).waitFor();
	}],
	['much data is shown in pages of fifty, the oldest of them is reached by links', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(`${url}messages?reader=orders`);
		assert.equal(await rows(page).count(), 50);
		const first = await text(page, 'a.open');
		await page.getByRole('link', { name: 'Older' }).click();
		await page.waitForURL(/before=/);
		await page.waitForFunction((old) => document.querySelector('a.open').innerText !== old, first);
		assert.equal(await rows(page).count(), 50);
		await page.getByRole('link', { name: 'Newest' }).click();
		await page.waitForFunction((old) => document.querySelector('a.open').innerText === old, first);
		await page.goto(`${url}failures`);
		assert.equal(await text(page, 'tbody td.big'), '120');
		assert.match(await text(page, '#nav'), /Failures 130/);
	}],
	['groups can be made by cause, type, relay, sink and key', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(`${url}failures`);
		for (const [by, groups] of [['type', 3], ['relay', 1], ['sink', 1], ['key', 130], ['cause', 3]]) {
			await page.getByRole('link', { name: `by ${by}` }).click();
			await page.waitForFunction((n) => document.querySelectorAll('tbody tr[tabindex]').length === n, groups);
		}
		await page.getByRole('link', { name: 'dead', exact: true }).click();
		await page.waitForFunction(() => document.querySelectorAll('tbody tr[tabindex]').length === 1);
		assert.match(await text(page, 'tbody'), /3 keys, 12 parked/);
	}],
	['the address holds the state: it can be shared, and back works', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(`${url}failures`);
		await page.getByRole('link', { name: 'by type' }).click();
		await page.getByRole('button', { name: /^OrderShipped/ }).click();
		await page.getByText('messages like these').click();
		await page.waitForURL(/messages\?/);
		await page.waitForFunction(() => document.querySelectorAll('tbody tr[tabindex]').length === 3);
		assert.equal(await page.locator('#search').inputValue(), 'type:OrderShipped state:dead');
		const other = await open();
		await other.goto(page.url());
		assert.equal(await rows(other).count(), 3);
		await page.goBack();
		await page.getByText('messages like these').waitFor();
		await page.goBack();
		await page.waitForFunction(() => !document.querySelector('.below'));
		assert.match(page.url(), /by=type/);
	}],
	['the search box understands ids, keys, types, states, correlations and errors', async ({ open, place }) => {
		const { url, ids } = await place('much');
		const page = await open();
		const search = async (what, count) => {
			await page.keyboard.press('/');
			await page.locator('#search').fill(what);
			await page.keyboard.press('Enter');
			await page.waitForFunction((n) => document.querySelectorAll('tbody tr[tabindex]').length === n, count);
			await page.locator('main').focus();
		};
		await page.goto(`${url}?reader=orders`);
		await search('key:order:9000', 5);
		await search('order:9000', 5);
		await search('key:order:9000 state:parked', 4);
		await search('type:InvoiceSent', 7);
		await search('error:"timeout after"', 7);
		await search('corr:c-7 state:dead', 0);
		await page.keyboard.press('/');
		await page.locator('#search').fill(ids[0]);
		await page.keyboard.press('Enter');
		await page.waitForURL(new RegExp(`messages/${ids[0]}`));
		// The address comes first, the page when its answer is there.
		await page.getByRole('heading', { level: 1, name: new RegExp(ids[0]) }).waitFor();
	}],
	['a search that finds nothing says how much it covered', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(`${url}messages?reader=orders&key=nobody`);
		await page.getByText('No message matches').waitFor();
		await page.getByText('searched to its beginning').waitFor();
	}],
	['search further back goes on until something is found, and can be stopped', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		let calls = 0;
		const answer = (messages, next) => ({ json: { store: 'main', reader: 'orders', now_us: Date.now() * 1000, messages, next,
			searched: { from_seq: 1, to_seq: 2, rows: 100000, complete: false } } });
		await page.route('**/api/v1/messages?*before=*', async (route) => {
			calls++;
			if (calls > 3) return; // the last one never answers
			const real = await (await route.fetch({ url: `${url}api/v1/messages?reader=orders&key=order:9000` })).json();
			await route.fulfill(answer(calls === 3 ? real.messages : [], `${calls}`));
		});
		await page.route('**/api/v1/messages?*key=far*', async (route) => (route.request().url().includes('before=') ? route.fallback()
			: route.fulfill(answer([], 'x'))));
		await page.goto(`${url}messages?reader=orders`);
		await page.locator('#search').fill('key:far');
		await page.keyboard.press('Enter');
		await page.getByRole('button', { name: 'Search further back' }).click();
		await page.waitForFunction(() => document.querySelectorAll('tbody tr[tabindex]').length === 5);
		assert.equal(calls, 3);
		await page.getByText('Searched 400,000 rows').waitFor();
		await page.getByRole('button', { name: 'Search further back' }).click();
		await page.getByRole('button', { name: 'Stop searching' }).click();
		await page.getByRole('button', { name: 'Search further back' }).waitFor();
	}],
	['one message has its reason, timeline, readers, payload and headers', async ({ open, place }) => {
		const { url } = await place('little');
		const page = await open();
		await page.goto(`${url}messages?state=dead`);
		await page.locator('a.open').first().click();
		await page.locator('.why').waitFor();
		assert.match(await text(page, '.why'), /dead/);
		assert.match(await text(page, '.timeline'), /created.*dead/s);
		assert.match(await text(page, 'main'), /0 before it, 4 after it/);
		assert.match(await text(page, 'main'), /"tenant": "acme"/);
		await page.getByRole('link', { name: 'hex' }).click();
		await page.getByText(/^00000000 {2}7b 22/).waitFor();
		await page.goto(`${url}messages?state=parked`);
		await page.locator('a.open').first().click();
		await page.getByText('go there').click();
		await page.waitForFunction(() => document.querySelector('.title .st').innerText === 'dead');
	}],
	['streams lead to their events, and these to who has read them', async ({ open, place }) => {
		const p = await place('little', true);
		p.push([1, 2, 3].map((n) => ({ aggregate_type: 'account', aggregate_id: 'a/7', event_type: `Deposited${n}`, sequence_number: n, revision: n })));
		await p.settled();
		const page = await open();
		await page.goto(`${p.url}streams`);
		assert.match(await text(page, 'main'), /account\s+1\s+3/);
		await page.getByRole('link', { name: 'a/7', exact: true }).click();
		await page.getByRole('heading', { name: 'Stream account/a/7' }).waitFor();
		assert.match(await page.locator('tbody tr').first().innerText(), /3\s+Deposited3\s+3\s+[\d:]+\s+published/);
		await page.getByRole('link', { name: 'Deposited2' }).click();
		await page.getByRole('heading', { level: 1, name: /^Message/ }).waitFor();
		await page.getByRole('link', { name: 'a/7', exact: true }).click();
		await page.getByRole('heading', { name: 'Stream account/a/7' }).waitFor();
		await page.locator('#search').fill('stream:account/none');
		await page.keyboard.press('Enter');
		await page.getByText('there is no stream none of type account').waitFor();
	}],
	['a consumer shows its processes and what it has parked', async ({ open, place }) => {
		const p = await place('none', true);
		const page = await open();
		const parked = { n: 1, id: p.dir, key: 'order:7', event_type: 'OrderPaid', state: 'dead', behind: false, attempts: 5,
			since_us: Date.now() * 1000, due_us: null, place: '0-1', reason: 'no such customer' };
		const consumer = { consumer: 'billing', source: 'redis orders', status: 'held', trouble: '1 dead message since 3m', handled: 12,
			duplicates: 1, failed: 5, rate: 3.4, in_flight: 0, lag: 40, oldest_ms: 61000, parked: 1, dead: 1, held_keys: 1, processes: [
				{ id: 'x', hostname: 'host-a', pid: 4711, started_at: new Date().toISOString(), alive: true, has_lease: true, state: { source_state: 'up',
					handler_state: 'up', last_error: 'no such customer' } }] };
		await page.route('**/api/v1/consumers*', (route) => route.fulfill({ json: { store: 'main', installed: true, consumers: [consumer],
			letters: route.request().url().includes('billing') ? [parked] : [], next: null } }));
		await page.goto(p.url);
		await page.locator('#nav').getByText('Consumers').click();
		await page.getByText('1 dead message since 3m').waitFor();
		await page.getByRole('link', { name: 'billing' }).click();
		await page.getByText('host-a').waitFor();
		await page.getByText('order:7').waitFor();
		await page.getByText('outbox dlq retry billing').waitFor();
	}],
	['the chart is read by pointer and arrow keys, and as a table', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(url);
		const plot = page.getByRole('slider');
		const at = (minute) => page.waitForFunction((n) => document.querySelector('[role=slider]').ariaValueNow === n, `${minute}`);
		await plot.focus();
		await page.keyboard.press('ArrowLeft');
		await page.keyboard.press('ArrowLeft');
		await at(57);
		await page.keyboard.press('Home');
		await at(0);
		assert.match(await plot.getAttribute('aria-valuetext'), /published/);
		await plot.hover({ position: { x: 5, y: 5 } });
		await at(0);
		await page.getByRole('button', { name: 'Table' }).click();
		const table = page.locator('table', { hasText: 'Throughput by minute' });
		await table.getByRole('row', { name: /^\d\d:\d\d [\d,]+ \d+$/ }).first().waitFor();
		await page.getByRole('link', { name: '24 h' }).click();
		await page.waitForFunction(() => document.querySelector('[role=slider]').ariaValueMax === '1439');
		assert.match(page.url(), /minutes=1440/);
	}],
];
