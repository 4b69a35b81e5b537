/** What the page of a call says of the traffic that its changes cut or that asked for them, and that no approval hangs on it. */
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import t from 'tap'
import { connectPce } from '../../plugins/context/connect-pce.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { renderChange } from '../../plugins/pages/approve/render-change.js'
import type { ShownCall } from '../../schemas/approvals.js'
import type { SharedConfig } from '../../schemas/config.js'
import { startService } from '../contract/authenticated-service.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { handMade } from '../tools/hand-made.js'
import { ALL, type BenchOptions, type Json, startApproving } from './bench.js'

const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const YESTERDAY = Math.floor(Date.now() / 86_400_000) - 1
const SEEN = new Date(YESTERDAY * 86_400_000).toISOString().slice(0, 10)
const HOSTILE = 'shop"\u202e<b>'
const OF_RULES =
  'Of 2 rules (1 added, 1 removed): 1: observed traffic depends on what it takes away; 1: no evidence in 30 days.'
const OF_RESTORED =
  'Of 2 rules (1 added, 1 removed): 1: no evidence in 30 days; 1: observed traffic asked for what it lets pass.'
const HOSTILE_SHOWN = 'shop"⟨U+202E⟩<b>'

/** Logins live in real time, and so does what they look at. */
function estateOf() {
  const estate = handMade({
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'shop-1': { ip: '10.0.1.1', labels: [`app=${HOSTILE}`, 'env=prod'], mode: 'full' },
    },
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [{ from: 'env=prod', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true }],
      },
      { name: 'Shop', scope: 'env=prod' },
    ],
    flows: [{ from: 'shop-1', to: 'pay-1', port: 443, connections: 7 }],
  })
  const conversations = [...estate.conversations].map((one) => ({ ...one, firstDay: YESTERDAY, lastDay: YESTERDAY }))
  return { estate: { ...estate, conversations } }
}

const LIMITS: SharedConfig['limits'] = {
  responseBudgetBytes: 80_000,
  trafficQueryTimeoutSeconds: 600,
  trafficMaxParts: 64,
}

async function start(t: Parameters<typeof startApproving>[0], options: BenchOptions = {}) {
  const bench = await startApproving(t, { estate: estateOf(), ...options })
  const pce = connectPce((bench.service.config as SharedConfig).pce, createCallTracker(), pino({ level: 'silent' }))
  t.teardown(() => pce.close())
  /** The stored request of a call that asks. */
  async function requestOf(asked: Json) {
    const found = await bench.desk.find(asked.approval_id)
    if (found === null) throw new Error(`not asked: ${JSON.stringify(asked)}`)
    return found.request
  }
  const queries = () => bench.simulator.requests.filter(({ path }) => path.endsWith('/traffic_flows/async_queries'))
  return { ...bench, pce, requestOf, queries }
}

/** The text of a piece of a page, with each quotation in brackets. */
const readText = (html: string) =>
  html
    .replace(/<q>(.*?)<\/q>/gu, '[$1]')
    .replace(/<[^>]*>/gu, '')
    .replace(/&#(\d+);/gu, (_, code: string) => String.fromCharCode(Number(code)))
    .replace(/\s+/gu, ' ')
    .trim()

/** What the page says of observed traffic: of all of it, of each object by name, and among what to look at first. */
function readEvidence(shown: ShownCall) {
  const page = renderChange(shown)
  const objects = [...page.matchAll(/<details class="object[^]*?<\/h4>[^]*?<\/details>/gu)].map(([object]) => {
    const [, name = ''] = /<h4>[^]*?<q>(.*?)<\/q>/u.exec(object) ?? []
    const [, said = '', list = ''] = /<p class="evidence">([^]*?)<\/p>\s*(<ul>[^]*?<\/ul>)?/u.exec(object) ?? []
    return [readText(name), [said, ...list.split('</li>')].map(readText).filter(Boolean)]
  })
  const [, whole = ''] = /<dt>Observed traffic<\/dt>\s*<dd>([^]*?)<\/dd>/u.exec(page) ?? []
  return { whole: readText(whole).replace(/ Looked up .*? UTC\.$/u, ''), objects: Object.fromEntries(objects) as Json }
}

/** What the page says of observed traffic at each rule of the rule sets. */
function readRules(shown: ShownCall): Json {
  const rules = [...renderChange(shown).matchAll(/<h5>([^]*?)<\/h5>([^]*?)(?=<h5>|<\/details>)/gu)].map(
    ([, title, rule]) => {
      const said = /<p class="evidence">([^]*?)<\/p>/u.exec(rule!)?.[1] ?? ''
      return [readText(title!), readText(said)]
    },
  )
  return Object.fromEntries(rules)
}

t.test('each change has its evidence, and neither the yes nor the run hangs on it', async (t) => {
  const bench = await start(t, {
    threads: {
      worker: pathToFileURL(compiled('programs/worker.ts')),
      heavy: { max: 1, perCaller: 1, queue: 4, queuePerCaller: 4, memoryMb: 512 },
    },
  })
  const { pce, simulator, requestOf } = bench
  await pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
  const ends = { consumers: [{ actors: 'ams' }], providers: [{ actors: 'ams' }] }
  const rule = { ...ends, enabled: true, ingress_services: [{ port: 9999, proto: 6 }] }
  const resolve = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  for (const set of [1, 2])
    await pce.post(`${SETS}/${set}/sec_rules`, { includeOrg: false, json: { ...rule, ...resolve } })
  await pce.ipLists.create({ name: 'Spare', ip_ranges: [{ from_ip: '192.0.2.1' }] })

  const asked = await bench.call('ann', ALL, { all_pending: true })
  const request = await requestOf(asked)
  t.same(readEvidence(request.shown), {
    whole: '1 row of the last 30 days was judged by the policies with and without each change.',
    objects: {
      Pay: [
        `Observed traffic: In 30 days 7 connections of 1 pair would be cut. ${OF_RULES}`,
        `[${HOSTILE_SHOWN} (prod)] → [pay (prod)] on 443/tcp: 7 connections would be cut, last seen ${SEEN}.`,
      ],
      Shop: ['Observed traffic: No evidence in 30 days.'],
      Spare: ['Observed traffic: No rule depends on it.'],
    },
  })
  t.same(readRules(request.shown), {
    'New allow rule [all workloads to all workloads, 9999/tcp] ▲ opens more':
      'Observed traffic: No evidence in 30 days.',
    'Deleted allow rule [env=prod to all workloads, 443/tcp] ▼ closes more':
      'Observed traffic: In 30 days 7 connections of 1 pair would be cut.',
  })
  t.same(request.shown.warnings.slice(0, 2), [
    'Of 1 change: observed traffic depends on what it takes away.',
    'Of 2 changed rules: no evidence in 30 days.',
  ])

  simulator.faults.add({ kind: 'status', path: /\/async_queries$/, method: 'POST', status: 403, times: 9 })
  const blind = await requestOf(await bench.call('bob', ALL, { all_pending: true }))
  const { whole, objects } = readEvidence(blind.shown)
  t.match(whole, /^What it says of these changes is not known: POST .*: the PCE answered 403 Forbidden.*\.$/u)
  const unknown = ['Observed traffic: Not known, as said above.']
  t.same(objects, { Pay: unknown, Shop: unknown, Spare: unknown })
  t.equal(blind.boundTo, request.boundTo, 'the digest is that of the changes alone')

  const before = bench.queries().length
  await bench.decide(asked.approval_id, 'approved', bench.person('ann'))
  partial(t, await bench.call('ann', ALL, { all_pending: true }), { verified: true, version: Number })
  t.equal(bench.queries().length, before, 'the run looks at no traffic')

  simulator.faults.clear()
  const restored = await requestOf(await bench.call('ann', 'restore-policy-version', { version: 1 }))
  t.same(readEvidence(restored.shown).objects.Pay, [
    `Observed traffic: In 30 days 7 connections of 1 pair would be stopped without it. ${OF_RESTORED}`,
    `[${HOSTILE_SHOWN} (prod)] → [pay (prod)] on 443/tcp: 7 connections would be stopped without it, last seen ${SEEN}.`,
  ])

  const [pay] = (await pce.labels.getAll()).filter(({ value }) => value === 'pay')
  await pce.put(`${SETS}/2`, { includeOrg: false, json: { scopes: [[{ label: { href: pay!.href } }]] } })
  const scoped = await requestOf(await bench.call('ann', ALL, { all_pending: true }))
  t.same(readRules(scoped.shown), {
    'Changed allow rule [all workloads to all workloads, 9999/tcp]': 'Observed traffic: No evidence in 30 days.',
  })
  await pce.ipLists.create({ name: 'Lost', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const asBefore = bench.queries().length
  const discard = await requestOf(await bench.call('ann', 'discard-draft-changes', { all: true }))
  t.same(readEvidence(discard.shown), { whole: '', objects: { Lost: [], Shop: [] } }, 'what is enforced stays')
  t.equal(bench.queries().length, asBefore)
})

t.test('the first 50 changes are looked up, and the page says so', async (t) => {
  const bench = await start(t)
  for (let n = 0; n < 52; n++)
    await bench.pce.ipLists.create({ name: `list ${n}`, ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const { shown } = await bench.requestOf(await bench.call('ann', ALL, { all_pending: true }))
  const { whole, objects } = readEvidence(shown)
  t.equal(
    whole,
    'None was read, because it can say nothing of these changes. Evidence was looked up for 50 of 52 changes.',
  )
  const said = Object.values(objects).map(String)
  t.equal(said.filter((text) => text === 'Observed traffic: No rule depends on it.').length, 50)
  t.equal(said.filter((text) => text === 'Observed traffic: Not looked up for this change.').length, 2)
})

t.test('a PCE that does not answer in time keeps no question from being asked', async (t) => {
  const bench = await start(t, { limits: { ...LIMITS, trafficQueryTimeoutSeconds: 0.1 } })
  await bench.pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
  bench.simulator.faults.add({ kind: 'hang', path: /\/async_queries$/, method: 'POST', times: 9 })
  const { shown } = await bench.requestOf(await bench.call('ann', ALL, { all_pending: true }))
  t.same(readEvidence(shown), {
    whole: 'What it says of these changes is not known: it could not be read within 0.1 s.',
    objects: { Pay: ['Observed traffic: Not known, as said above.'] },
  })
})

t.test('pairs that are only counted are no part of the change that is missing', (t) => {
  const pair = { source: 'a', destination: 'b', ports: ['443/tcp'], connections: 1, effect: 'would be cut' }
  const evidence = { says: 'In 30 days 5 connections of 5 pairs would be cut.', traffic: [pair], traffic_total: 5 }
  const object = { kind: 'rule set', name: 'Pay', change: 'update' as const, fields: [], evidence }
  const page = renderChange({ summary: '', warnings: [], objects: [object], objects_total: 1 })
  t.match(page, /… and 4 less busy pairs\./)
  t.notMatch(page, /This is not all of it/)
  t.end()
})

t.test('without a page nobody looks at traffic', async (t) => {
  const { call, tokenOf, pce } = await startService(t, { mode: 'shared', estate: estateOf() })
  const token = await tokenOf('ann')
  const removed = await call(token, 'delete-sec-rule', { href: `${SETS}/1/sec_rules/1` })
  t.notOk('error' in removed, JSON.stringify(removed))
  partial(t, await call(token, ALL), { error: 'confirm_required', summary: String })
  t.same(
    pce.simulator.requests.filter(({ path }) => path.includes('/traffic_flows')),
    [],
  )
})
