// SPDX-License-Identifier: MIT
// Retry, skip and discard: of a message, a selection, a group, a filter; by keyboard alone; refused when the set changed.
import assert from 'node:assert/strict';
import fs from 'node:fs';

const dialog = (page) => page.getByRole('dialog');
const confirm = async (page, name, reason) => {
	if (reason) await dialog(page).getByLabel('Reason').fill(reason);
	await dialog(page).getByRole('button', { name, exact: true }).click();
};
const states = (p) => {
	const r = JSON.parse(p.outbox('status', '--json')).readers.find((x) => x.reader === 'orders');
	return { failed: r.failed, dead: r.dead, parked: r.parked, discarded: r.discarded };
};
const idOf = (p, state) => JSON.parse(p.outbox('failures', '--json')).groups.find((g) => g.states[state]).sample[0];

export default [
	['a message is retried, and the audit names the reason', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		fs.writeFileSync(p.mended, '');
		await page.goto(`${p.url}messages/${idOf(p, 'dead')}`);
		await page.getByRole('button', { name: 'Retry…' }).click();
		await dialog(page).getByRole('heading', { name: 'Retry 1 message?' }).waitFor();
		assert.match(await dialog(page).locator('code').innerText(), /^outbox retry /);
		await confirm(page, 'Retry 1', 'the receiver is mended');
		await page.getByText('1 of 1 message retried').first().waitFor();
		await page.waitForFunction(() => document.querySelector('.title .st').innerText === 'published');
		await page.goto(`${p.url}audit`);
		await page.getByText('the receiver is mended').waitFor();
		assert.match(await page.locator('main tbody').innerText(), /retry\s+orders\s+1/);
	}],
	['a message is skipped: it stays dead and its key goes on', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}messages/${idOf(p, 'dead')}`);
		await page.getByRole('button', { name: 'Skip…' }).click();
		await confirm(page, 'Skip 1');
		await page.getByText('1 of 1 message skipped').first().waitFor();
		await p.until('its key goes on', () => states(p).parked === 0);
		assert.equal(states(p).dead, 1);
	}],
	['a selection of messages is discarded', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}messages?state=parked`);
		await page.locator('main tbody input').nth(0).check();
		await page.locator('main tbody input').nth(1).check();
		await page.getByText('2 messages selected').waitFor();
		await page.getByRole('button', { name: 'Discard 2 selected…' }).click();
		await dialog(page).getByText('This cannot be undone').waitFor();
		await confirm(page, 'Discard 2');
		await page.getByText('2 of 2 messages discarded').first().waitFor();
		await p.until('two are left', () => states(p).parked === 2);
	}],
	['a key is let go by what holds it', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		await page.goto(`${p.url}keys`);
		await page.getByLabel('Select order:9000').check();
		await page.getByRole('button', { name: 'Discard…' }).click();
		await confirm(page, 'Discard 1');
		await page.getByText('1 of 1 message discarded').first().waitFor();
		await p.until('the key goes on', () => states(p).parked === 0);
	}],
	['all that match a filter are retried: from 100 on the number is typed', async ({ open, place }) => {
		const p = await place('much', true);
		const page = await open();
		fs.writeFileSync(p.mended, '');
		await page.goto(`${p.url}messages?reader=orders&state=failed&type=OrderPaid`);
		await page.getByRole('button', { name: 'Retry all that match…' }).click();
		await dialog(page).getByRole('heading', { name: 'Retry 120 messages?' }).waitFor();
		await dialog(page).getByText('and 115 more').waitFor();
		const button = dialog(page).getByRole('button', { name: 'Retry 120' });
		assert.ok(await button.isDisabled());
		await dialog(page).getByLabel('Type 120 to confirm').fill('12');
		assert.ok(await button.isDisabled());
		await dialog(page).getByLabel('Type 120 to confirm').fill('120');
		await button.click();
		await page.getByText('120 of 120 messages retried').first().waitFor();
		await p.until('they are out', () => states(p).failed === 7);
	}],
	['several groups are retried by one decision', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		fs.writeFileSync(p.mended, '');
		await page.goto(`${p.url}failures`);
		await page.getByLabel('Select all').check();
		await page.getByRole('button', { name: 'Retry 2…' }).click();
		await dialog(page).getByRole('heading', { name: 'Retry 2 messages?' }).waitFor();
		assert.equal(await dialog(page).locator('code').count(), 2);
		await confirm(page, 'Retry 2', 'both');
		await p.until('both are out', () => states(p).failed + states(p).dead === 0);
		await page.getByText('Nothing is failing').waitFor();
	}],
	['a set that has changed since is refused with the new number', async ({ open, place }) => {
		const p = await place('much', true);
		const page = await open();
		await page.goto(`${p.url}failures?by=type`);
		await page.getByLabel('Select InvoiceSent').check();
		await page.getByRole('button', { name: 'Skip 7…' }).click();
		await dialog(page).getByRole('heading', { name: 'Skip 7 messages?' }).waitFor();
		const id = JSON.parse(p.outbox('failures', '--by', 'type', '--json')).groups.find((g) => g.event_type === 'InvoiceSent').sample[0];
		p.outbox('discard', id, '--reader', 'orders', '--yes');
		await confirm(page, 'Skip 7');
		await dialog(page).getByText('the messages have changed').waitFor();
		await dialog(page).getByRole('heading', { name: 'Skip 6 messages?' }).waitFor();
		assert.equal(states(p).dead, 3);
		await confirm(page, 'Skip 6');
		await page.getByText('6 of 6 messages skipped').first().waitFor();
		assert.equal(states(p).dead, 9);
	}],
	['a long verb shows how far it is and can be stopped', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		let stopped = false;
		await page.route('**/api/v1/jobs/*', async (route) => {
			const job = await (await route.fetch()).json();
			await route.fulfill({ json: { ...job, done: 40, total: 1000, state: stopped ? 'stopped' : 'running' } });
		});
		await page.route('**/api/v1/jobs/*/stop', async (route) => {
			stopped = route.request().method() === 'POST';
			await route.continue();
		});
		await page.goto(`${p.url}failures`);
		await page.getByRole('button', { name: /^OrderShipped/ }).click();
		await page.locator('.below').getByRole('button', { name: 'Retry 1…' }).click();
		await confirm(page, 'Retry 1');
		await page.getByText('40 of 1,000 messages retried').waitFor();
		assert.equal(await page.locator('progress').evaluate((e) => e.value), 0.04);
		await page.getByRole('button', { name: 'Stop' }).click();
		await page.getByText('40 of 1,000 messages retried, stopped').first().waitFor();
	}],
	['the keyboard alone is enough to retry a group', async ({ open, place }) => {
		const p = await place('little', true);
		const page = await open();
		fs.writeFileSync(p.mended, '');
		const press = async (...keys) => {
			for (const key of keys) await page.keyboard.press(key);
		};
		await page.goto(p.url);
		await press('g', 'f');
		await page.getByRole('heading', { name: 'Failures' }).waitFor();
		await page.waitForFunction(() => document.activeElement.tagName === 'H1');
		await press('j', 'j', 'k', 'Enter');
		await page.getByText('messages like these').waitFor();
		await press('Escape');
		await page.waitForFunction(() => !document.querySelector('.below'));
		await press('x', 'r');
		await dialog(page).getByRole('heading', { name: 'Retry 1 message?' }).waitFor();
		await press('Escape');
		await page.waitForFunction(() => !document.querySelector('dialog').open);
		await press('r');
		await dialog(page).getByRole('heading', { name: 'Retry 1 message?' }).waitFor();
		for (let i = 0; i < 8 && await page.evaluate(() => document.activeElement.name !== 'reason'); i++) await press('Tab');
		await page.keyboard.type('by keyboard');
		await press('Enter');
		await page.getByText('1 of 1 message retried').first().waitFor();
		await press('g', 'a');
		await page.getByText('by keyboard').waitFor();
		await press('?');
		await dialog(page).getByText('next and previous row').waitFor();
	}],
	['a dialog that opens as another closes is whole', async ({ open, place }) => {
		const p = await place('little');
		const page = await open();
		await page.goto(`${p.url}failures`);
		await page.locator('main tbody tr[tabindex]').first().focus();
		await page.keyboard.press('r');
		await dialog(page).getByRole('heading', { name: 'Retry 1 message?' }).waitFor();
		await page.evaluate(() => { // the browser tells of the closing later
			document.querySelector('dialog').close();
			document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
		});
		await dialog(page).getByText('next and previous row').waitFor();
		await page.evaluate(() => {
			document.querySelector('dialog').close();
			document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'r', bubbles: true }));
		});
		await dialog(page).getByRole('heading', { name: 'Retry 1 message?' }).waitFor();
	}],
	['the command line of a verb is copied, also where there is no clipboard', async ({ open, place }) => {
		const p = await place('little');
		const page = await open();
		await page.addInitScript(() => {
			Object.defineProperty(navigator, 'clipboard', { value: undefined });
			document.addEventListener('copy', () => { window.copied = document.activeElement.value; });
		});
		await page.goto(`${p.url}failures?by=type`);
		await page.getByLabel('Select OrderPaid').check();
		await page.getByRole('button', { name: 'Retry 1…' }).click();
		const line = await dialog(page).locator('code').innerText();
		await dialog(page).getByRole('button', { name: 'Copy' }).click();
		assert.equal(await page.evaluate(() => window.copied), line);
		assert.match(p.outbox(...line.split(' ').slice(1), '--dry-run', '--yes'), /1/);
	}],
];
