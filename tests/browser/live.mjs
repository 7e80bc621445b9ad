// SPDX-License-Identifier: MIT
// The live stream: updates without a reload, one stream for all tabs, none while hidden, pause, polling.
import assert from 'node:assert/strict';

const streams = async (page, url) => {
	const metrics = await (await page.request.get(`${url}metrics`)).text();
	return Number(metrics.match(/^outbox_monitor_sse_clients(?:\{.*\})? (\d+)/m)[1]);
};
const card = (page, name) => page.locator('.card', { hasText: name }).locator('.value').first();
// Headless tabs are never hidden by themselves.
const hideable = () => {
	let hidden = false;
	Object.defineProperty(Document.prototype, 'hidden', { get: () => hidden });
	window.hide = (now) => {
		hidden = now;
		document.dispatchEvent(new Event('visibilitychange'));
	};
};

export default [
	['numbers follow without a reload', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(p.url);
		await page.evaluate(() => { window.same = true; });
		assert.equal(await card(page, 'dead').innerText(), '1');
		p.push([{ aggregate_id: '77', event_type: 'OrderShipped' }]);
		await page.waitForFunction(() => [...document.querySelectorAll('.card')].find((c) => c.innerText.startsWith('dead')).querySelector('.value').innerText === '2');
		assert.ok(await page.evaluate(() => window.same));
	}],
	['new rows wait behind a bar, and nothing moves under the pointer', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}messages`);
		const first = page.locator('main tbody tr').first();
		const before = [await first.innerText(), (await first.boundingBox()).y];
		p.push([1, 2, 3].map((n) => ({ aggregate_id: `${n}`, event_type: 'OrderPlaced' })));
		const bar = page.getByRole('button', { name: '3 new messages: show' });
		await bar.waitFor();
		assert.deepEqual([await first.innerText(), (await first.boundingBox()).y], before);
		assert.equal(await page.locator('main tbody tr').count(), 12);
		await bar.click();
		await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 15);
	}],
	['a group that is no longer failing stays where it is and says so', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}failures`);
		const [id] = JSON.parse(p.outbox('failures', '--json')).groups.find((g) => g.states.dead).sample;
		p.outbox('discard', id, '--yes');
		await page.getByText('no longer').waitFor();
		assert.equal(await page.locator('tr.gone').count(), 1);
		assert.equal(await page.locator('main tbody tr').count(), 2);
	}],
	['tabs share one stream, and when its tab closes another takes it over', async ({ open, place }) => {
		const p = await place('none', true);
		const one = await open();
		const two = await one.context().newPage();
		for (const page of [one, two]) {
			await page.goto(p.url);
			await page.getByText('live', { exact: true }).waitFor();
		}
		assert.equal(await streams(two, p.url), 1);
		await one.close();
		await p.until('the other tab streams', async () => (await two.evaluate(() => navigator.locks.query())).held.length === 1);
		await two.getByText('live', { exact: true }).waitFor();
	}],
	['a hidden tab has no stream and asks nothing', async ({ open, place }) => {
		const p = await place('none', true);
		const page = await open();
		await page.addInitScript(hideable);
		await page.goto(p.url);
		await page.getByText('live', { exact: true }).waitFor();
		let asked = 0;
		await page.evaluate(() => window.hide(true));
		page.on('request', () => asked++);
		assert.equal((await page.evaluate(() => navigator.locks.query())).held.length, 0);
		await page.waitForTimeout(5500);
		assert.equal(asked, 0);
		await page.evaluate(() => window.hide(false));
		await page.waitForRequest(/api\/v1\/events/);
	}],
	['pause stops every request until it is over', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}messages`);
		await page.getByText('live', { exact: true }).waitFor();
		await page.getByRole('button', { name: 'Pause' }).click();
		await page.getByText('paused', { exact: true }).waitFor();
		let asked = 0;
		page.on('request', () => asked++);
		p.push([{ aggregate_id: '1', event_type: 'OrderPlaced' }]);
		await page.waitForTimeout(5500);
		assert.equal(asked, 0);
		await page.getByRole('button', { name: 'Pause' }).click();
		await page.getByRole('button', { name: '1 new message: show' }).waitFor();
	}],
	['without the stream it polls, and says so', async ({ open, place }) => {
		const p = await place('none', true);
		const page = await open();
		await page.route('**/api/v1/events', (route) => route.abort());
		await page.goto(p.url);
		await page.getByText('polling each 5 s').waitFor();
		await page.waitForResponse(/api\/v1\/state/);
	}],
	['a server that went away is told, and found again', async ({ open, place }) => {
		const p = await place('none', true);
		const page = await open();
		await page.goto(p.url);
		await page.getByText('live', { exact: true }).waitFor();
		await page.context().setOffline(true);
		await page.route('**/api/**', (route) => route.abort());
		p.children.at(-1).kill('SIGTERM');
		await page.getByText('no answer').waitFor();
	}],
];
