/** Equal calls at once write once, in one process; between processes what is written twice is told. */
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import { createWriteOrder } from '../../plugins/dispatcher/write-order.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { defineTool } from '../../tools/define.js'
import { handMade } from './hand-made.js'
import { benchOf, NOW, startBench, type Bench, type Json } from './harness.js'

const estate = handMade({
  hosts: {
    'pay-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' },
    'shop-1': { ip: '10.1.0.2', labels: 'app=shop env=prod' },
  },
  flows: [{ from: 'shop-1', to: 'pay-1', port: 443, connections: 5 }],
  ipLists: { Branches: ['10.2.0.0/16'] },
  ruleSets: [
    { name: 'Pay', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams', services: [{ port: 22, proto: 6 }] }] },
  ],
})
const RULE = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 8443, proto: 'tcp' }] }
const PAY = { app_name: 'pay', env_name: 'prod' }

interface Outcome {
  answer?: Json
  /** Text of the error. */
  error?: string
}

const outcome = (asked: Promise<Json>): Promise<Outcome> =>
  asked.then(
    (answer: Json) => ({ answer }),
    (error: Error) => ({ error: error.message }),
  )

/** Two equal calls at once, and the writes of both. */
async function twice(bench: Bench, tool: string, args: object) {
  bench.writes()
  const outcomes = await Promise.all([outcome(bench.ok(tool, args)), outcome(bench.ok(tool, args))])
  return { outcomes, writes: bench.writes() }
}

t.test('two equal calls at once add once, and the other says why it added nothing', async (t) => {
  const cases: [tool: string, args: object, writes: number][] = [
    ['create-rule', { ...RULE, ruleset_name: 'Pay', rule_type: 'allow' }, 1],
    ['create-deny-rule', { ...RULE, ruleset_name: 'Pay' }, 1],
    ['create-ringfence', PAY, 3],
    ['create-ringfence', { ...PAY, ruleset_name: 'Pay', selective: true }, 3],
    ['create-ruleset', { name: 'New', scopes: [], rules: [RULE] }, 2],
    ['create-service', { name: 'api', service_ports: [{ port: 1, proto: 'tcp' }] }, 1],
    ['create-iplist', { name: 'Fresh', ip_ranges: [{ from_ip: '10.9.0.0/16' }] }, 1],
    ['create-workload', { name: 'box', ip_addresses: ['10.9.0.1'] }, 1],
  ]
  for (const [tool, args, wanted] of cases) {
    const bench = await startBench(t, { estate })
    const { outcomes, writes } = await twice(bench, tool, args)
    t.same(
      writes.map(({ method }) => method),
      Array.from({ length: wanted }, () => 'POST'),
      `${tool} writes once: ${JSON.stringify(writes.map(({ path }) => path))}`,
    )
    t.equal(outcomes.filter(({ answer }) => answer !== undefined).length, 1, `${tool}: ${JSON.stringify(outcomes)}`)
    t.match(outcomes.find(({ error }) => error !== undefined)?.error, /already_exists/u)
  }
})

t.test('two edits of a list at once both hold, and an equal one adds nothing', async (t) => {
  const bench = await startBench(t, { estate })
  const edit = (range: string) => outcome(bench.ok('edit-ip-list-ranges', { name: 'Branches', add_ranges: [range] }))
  await Promise.all([edit('10.3.0.0/16'), edit('10.4.0.0/16'), edit('10.4.0.0/16')])
  const [list] = (await bench.pce.ipLists.getAll('draft', null, { params: { name: 'Branches' } })) as Json[]
  t.same(list.ip_ranges.map(({ from_ip: from }: Json) => from).sort(), ['10.2.0.0/16', '10.3.0.0/16', '10.4.0.0/16'])
})

t.test('a rule that is repeated later is stored with a warning, as before', async (t) => {
  const bench = await startBench(t, { estate })
  const args = { ...RULE, ruleset_name: 'Pay', rule_type: 'allow' }
  await bench.ok('create-rule', args)
  const { warnings } = await bench.ok('create-rule', args)
  t.match(warnings[0], /^The rule set already has this rule, /u)
})

t.test('two processes that add the same rule at once say so', async (t) => {
  const simulator = await createPceSimulator({ estate, now: () => NOW })
  t.teardown(() => simulator.close())
  const url = await simulator.listen()
  const [one, other] = [benchOf(t, simulator, url), benchOf(t, simulator, url)]
  const args = { ...RULE, ruleset_name: 'Pay', rule_type: 'allow' }
  const outcomes = await Promise.all([outcome(one.ok('create-rule', args)), outcome(other.ok('create-rule', args))])
  const [{ rules }] = (await one.pce.ruleSets.getAll('draft', null, { params: { name: 'Pay' } })) as Json[]
  const added = outcomes.filter(({ answer }) => answer !== undefined)
  t.equal(rules.length, 1 + added.length, 'what is added is told, and what is refused is not added')
  const said = outcomes.filter(({ answer, error }) =>
    error === undefined
      ? (answer.warnings ?? []).some((text: string) => text.startsWith('Somebody else added the same rule'))
      : error.includes('already_exists'),
  )
  t.ok(said.length >= 1, `somebody says it: ${JSON.stringify(outcomes)}`)
})

/** A tool that has its turn at an object until the test lets it go. */
function createHolder(object: string) {
  let letGo = () => {}
  let isHeld = () => {}
  const held = new Promise<void>((resolve) => (isHeld = resolve))
  const gone = new Promise<void>((resolve) => (letGo = resolve))
  const tool = defineTool({
    name: 'hold',
    summary: 'Holds.',
    effect: 'write',
    toolset: 'rules',
    roles: ['admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: Type.Object({}),
    output: Type.Object({}),
    example: {},
    handler: (_args, ctx) =>
      ctx.inOrder(object, () =>
        // A call that asks again while it has its turn does not wait for itself.
        ctx.inOrder(object, async () => {
          isHeld()
          await gone
          return {}
        }),
      ),
  })
  return { tool, held, letGo: () => letGo() }
}

async function held(t: Test, waitMs?: number, object = 'rule_sets Pay') {
  const holder = createHolder(object)
  const writeOrder = createWriteOrder(waitMs === undefined ? {} : { waitMs })
  const bench = await startBench(t, { estate, tools: [holder.tool], writeOrder })
  const holding = bench.ok('hold')
  await holder.held
  return { bench, holding, letGo: holder.letGo }
}

t.test('waiting for a turn is bounded, and ends with nothing written', async (t) => {
  const { bench, holding, letGo } = await held(t, 0)
  const args = { ...RULE, ruleset_name: 'Pay', rule_type: 'allow' }
  const error = await bench.fails('create-rule', args, 'busy')
  t.match(error.message, /Nothing was written/u)
  t.same(bench.writes(), [])
  letGo()
  await holding
  await bench.ok('create-rule', args)
})

t.test('a list that somebody else changes meanwhile is not replaced', async (t) => {
  const { bench, holding, letGo } = await held(t, undefined, 'ip_lists Branches')
  const replace = { name: 'Branches', ip_ranges: [{ from_ip: '10.2.0.0/24' }] }
  const waiting = bench.fails('update-iplist', replace, 'already_exists')
  const isAsked = () => bench.simulator.requests.some(({ path }) => path.endsWith('/ip_lists'))
  while (!isAsked()) await new Promise((resolve) => setImmediate(resolve))
  const [list] = (await bench.pce.ipLists.getAll('draft', null, { params: { name: 'Branches' } })) as Json[]
  const ip_ranges = [{ from_ip: '10.2.0.0/16' }, { from_ip: '10.3.0.0/16' }]
  await bench.pce.put(list.href, { json: { ip_ranges }, includeOrg: false })
  bench.writes()
  letGo()
  await holding
  const { reason, fields } = await waiting
  t.same({ reason, fields }, { reason: 'changed_meanwhile', fields: ['ip_ranges'] })
  t.same(bench.writes(), [])
  t.same(
    (await bench.ok('update-iplist', replace)).previous.ip_ranges.map(({ from_ip: from }: Json) => from),
    ['10.2.0.0/16', '10.3.0.0/16'],
    'the next call says what it replaces',
  )
})

t.test('label changes of one workload at once all hold', async (t) => {
  const bench = await startBench(t, { estate })
  const change = (args: object) =>
    bench.ok('label-workloads', { workloads: ['pay-1'], create_missing_labels: true, ...args })
  const answers = await Promise.all([
    change({ set: ['env=test'] }),
    change({ set: ['role=web'] }),
    change({ add: ['loc=eu'] }),
  ])
  const [{ labels }] = (await bench.ok('get-workloads', { name: 'pay-1', detail_level: 'full' })).workloads
  t.same(labels.map(({ key, value }: Json) => `${key}=${value}`).sort(), ['app=pay', 'env=test', 'loc=eu', 'role=web'])
  t.same(
    answers.map(({ outcomes }) => outcomes.updated),
    [1, 1, 1],
  )
  t.ok(
    answers.some(({ warnings }) =>
      warnings?.includes('1 workload got other labels during this call; it was planned again on these.'),
    ),
  )
  const outcomes = await Promise.all([
    outcome(bench.ok('update-workload', { name: 'pay-1', labels: ['app=pay'] })),
    outcome(bench.ok('update-workload', { name: 'pay-1', labels: ['app=shop'] })),
  ])
  t.equal(outcomes.filter(({ answer }) => answer !== undefined).length, 1, JSON.stringify(outcomes))
  t.match(
    outcomes.find(({ error }) => error !== undefined)?.error,
    /Somebody else changed labels of the workload \\"pay-1\\"/u,
  )
})

t.test('two processes that label one workload at once say what does not hold', async (t) => {
  const simulator = await createPceSimulator({ estate, now: () => NOW })
  t.teardown(() => simulator.close())
  const url = await simulator.listen()
  const [one, other] = [benchOf(t, simulator, url), benchOf(t, simulator, url)]
  const change = { workloads: ['pay-1'], create_missing_labels: true }
  const answers = (await Promise.all([
    one.ok('label-workloads', { ...change, set: ['role=web'] }),
    other.ok('label-workloads', { ...change, set: ['loc=eu'] }),
  ])) as Json[]
  const [{ labels }] = (await one.ok('get-workloads', { name: 'pay-1', detail_level: 'full' })).workloads
  const has = new Set(labels.map(({ key }: Json) => key))
  for (const [at, key] of ['role', 'loc'].entries())
    t.equal(has.has(key) || answers[at].outcomes.updated === 0, true, `${key}: ${JSON.stringify(answers[at])}`)
})

t.test('a server that stops ends the waiting', async (t) => {
  const { bench, holding, letGo } = await held(t)
  const waiting = bench.fails('create-rule', { ...RULE, ruleset_name: 'Pay', rule_type: 'allow' }, 'cancelled')
  const isAsked = () => bench.simulator.requests.filter(({ path }) => path.endsWith('/labels')).length > 0
  while (!isAsked()) await new Promise((resolve) => setImmediate(resolve))
  bench.stop()
  await waiting
  t.same(bench.writes(), [])
  letGo()
  await holding
})
