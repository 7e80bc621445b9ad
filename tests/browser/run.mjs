#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The monitor's pages in Chromium, against the built program, as TAP: run.mjs OUTBOX [part of a case's name]
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Place, badDay } from './place.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
// Far more than it takes: they end what hangs, also on a machine with much else to do.
const CASE_MS = 180_000;
const WAIT_MS = 40_000;
const binary = path.resolve(process.argv[2]); // cases work in directories of their own
const only = process.argv[3];

function skip(why) {
	console.log(`1..0 # SKIP ${why}`);
	process.exit(0);
}
const chromiumPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));
if (!chromiumPath) skip('no Chromium is installed');
let playwright, axePath;
try {
	const require = createRequire(path.join(ROOT, '.cache/node/'));
	playwright = require('playwright-core');
	axePath = require.resolve('axe-core/axe.min.js');
} catch {
	skip('playwright-core and axe-core are not installed: run tools/setup test');
}

const cases = [];
for (const file of ['pages', 'live', 'verbs', 'access', 'look', 'budget'])
	cases.push(...(await import(`./${file}.mjs`)).default);
const chosen = cases.filter(([name]) => !only || name.includes(only));

const browser = await playwright.chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const axe = fs.readFileSync(axePath, 'utf8');
const places = {};
const made = [];
const MAKE = {
	none(p) {
		p.configure();
		p.outbox('setup');
	},
	little(p) {
		p.configure({ monitor: 'title: shop, environment: staging' });
		p.outbox('setup');
		p.ids = badDay(p, { published: 6, failing: 1, timeouts: 0, dead: 1 });
		p.start('work', '--silent');
	},
	much(p) {
		p.configure({ relays: ['orders', 'audit'], monitor: 'title: shop, environment: PRODUCTION' });
		p.outbox('setup');
		p.ids = badDay(p, { published: 2600, failing: 120 });
		p.start('work', '--silent');
	},
	guarded(p) {
		const tokens = 'tokens: { viewer: viewer-token-0123456789, operator: operator-token-0123456789 }';
		p.configure({ monitor: `${tokens}, base_path: /ops/outbox, payloads: { viewer: masked }` });
		p.outbox('setup');
		p.ids = p.push([{ aggregate_id: '1', event_type: 'OrderShipped', payload: { password: 'hunter2', order: 7 } }]);
		p.work();
	},
};
// A place of that kind with a monitor; shared by the cases that only look, `fresh` for those that change it.
async function place(kind, fresh) {
	if (!fresh && places[kind]) return places[kind];
	const p = new Place(binary);
	made.push(p); // ended and removed also when what follows fails
	MAKE[kind](p);
	if (kind !== 'none') await p.settled();
	p.url = await p.monitor();
	if (!fresh) places[kind] = p;
	return p;
}

// A page whose faults are faults of the case: errors of scripts, refusals by the content security policy.
function watch(context, faults) {
	context.on('page', (page) => {
		page.on('pageerror', (e) => faults.push(`script error: ${e.message}`));
		page.on('console', (m) => m.type() === 'error' && !/Failed to load resource/.test(m.text()) && faults.push(`console: ${m.text()}`));
	});
}

async function violations(page) {
	await page.evaluate(axe);
	const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
	return found.violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}: ${v.nodes[0].any[0]?.message ?? v.help}`);
}

console.log(`1..${chosen.length}`);
let number = 0;
let failed = 0;
for (const [name, run] of chosen) {
	const faults = [];
	const contexts = [];
	const open = async (options = {}) => {
		const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
		watch(context, faults);
		contexts.push(context);
		const page = await context.newPage();
		page.setDefaultTimeout(WAIT_MS);
		return page;
	};
	const started = Date.now();
	let timer;
	try {
		await Promise.race([run({ open, place, violations, browser }), new Promise((_, stop) => {
			timer = setTimeout(() => stop(new Error(`not done after ${CASE_MS / 1000} s`)), CASE_MS);
		})]);
		if (faults.length) throw new Error(faults.join('; '));
		console.log(`ok ${++number} - ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${++number} - ${name}`);
		console.error(`${name}: ${error.stack ?? error}`);
	}
	clearTimeout(timer);
	if (process.env.TIMES) console.log(`# ${Date.now() - started} ms`);
	await Promise.all(contexts.map((c) => c.close()));
}
await browser.close();
await Promise.all(made.map((p) => p.close()));
process.exit(failed ? 1 : 0);
