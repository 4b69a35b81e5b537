/**
 * On random estates whose recorded decisions are planted, what a dry run of create-ringfence says of traffic in both
 * directions is what explain-flow and the simulator's evaluator say once it is written, provisioned and enforced.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { evaluatorOf, toggleRules, viewOf } from './explained-world.js'
import { handMade, type HandMadeEstate, type HandMadeFlow } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { portName } from './losses.js'
import { randomCase, type RandomCase } from './random-estate.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const PROTOCOLS: Record<number, string> = { 1: 'icmp', 6: 'tcp', 17: 'udp' }
const RANDOM = { numRuns: Number(process.env.RINGFENCE_ESTATES ?? 30), seed: 20261129, endOnFailure: true }
const LOSSES = ['cut', 'blocked_by_override_deny']
const OURS = ['pay-1', 'pay-2', 'pay-3']

const labelsOf = ({ hosts }: HandMadeEstate, name: string) =>
  Object.fromEntries(
    String(hosts?.[name]?.labels ?? '')
      .split(/[ ,]/)
      .map((text) => text.split('=')),
  ) as Record<string, string>

/** The effects that a plan says of each flow, in the order of the flows; a port of one source may have several. */
function effectsOf(plan: Json, estate: HandMadeEstate): Set<string>[] {
  return (estate.flows ?? []).map(({ from, port, proto = 6 }) => {
    const { app, env } = labelsOf(estate, from)
    const onPort = (one: Json) => one.proto === proto && (one.port ?? 0) === (proto === 1 ? 0 : port)
    if (app === 'pay' && env === 'prod') {
      const own = plan.would_be_cut.filter(
        ({ source, ports }: Json) => source === 'pay (prod)' && ports.includes(portName({ port, proto })),
      )
      return new Set(['allowed', ...own.map(({ effect }: Json) => effect as string)])
    }
    const ip = estate.hosts?.[from]?.ip ?? from
    const rows = [
      ...plan.inbound_remote_apps.filter((row: Json) => row.app === app && row.env === env),
      ...plan.unlabelled_inbound.filter((row: Json) => row.ip === ip),
    ]
    return new Set<string>(
      rows.flatMap((row: Json) => row.observed_ports.filter(onPort).map(({ effect }: Json) => effect)),
    )
  })
}

/** Makes the ringfence take effect, with all that is pending or alone, in the mode that it is made for. */
async function enforce(
  { ok, pce }: Bench,
  estate: HandMadeEstate,
  { asked, provisionsAll }: RandomCase,
): Promise<void> {
  const { ruleset, selective } = await ok('create-ringfence', { ...PAY, ...asked })
  const pending = await pce.getPendingPolicyChanges()
  if (pending.length > 0)
    await ok('provision-policy', provisionsAll ? { all_pending: true } : { hrefs: [ruleset.href] })
  for (const workload of await pce.workloads.getAll()) {
    if (!isOwn(estate, workload.name ?? '') || workload.managed === false || workload.enforcement_mode === 'full')
      continue
    await pce.workloads.update(workload.href, { enforcement_mode: selective === true ? 'selective' : 'full' })
  }
}

const isOwn = (estate: HandMadeEstate, name: string): boolean => {
  const { app, env } = labelsOf(estate, name)
  return app === 'pay' && env === 'prod'
}

const onOf = ({ port, proto = 6, process, service }: HandMadeFlow) => ({
  proto,
  ...(port !== undefined && { port }),
  ...(process && { process }),
  ...(service && { service }),
})

/** What explain-flow says of a flow. */
const explain = async ({ ok }: Bench, { from, to, port, proto = 6 }: HandMadeFlow): Promise<Json> => {
  const args = {
    source: from,
    destination: to,
    proto: PROTOCOLS[proto],
    ...(proto !== 1 && { port }),
    lookback_days: 0,
  }
  return from === to ? { verdict: 'uncertain' } : (await ok('explain-flow', args)).active
}

/** What a plan says that the application's workloads drop of what they send, in connections. */
function saidOutbound({ warnings }: Json) {
  const countIn = (pattern: RegExp) =>
    Number((warnings as string[]).map((text) => pattern.exec(text)?.[1]).find(Boolean) ?? 0)
  return {
    lost: countIn(/traffic that no rule allows \((\d+) connection/u),
    open: countIn(/Of (\d+) outbound connections? it is not known/u),
  }
}

const seen = { inbound: 0, outbound: 0, lost: 0, open: 0, estates: 0 }

async function check(t: Test, one: RandomCase, recorded: readonly string[]): Promise<string[]> {
  const { estate, asked } = one
  // Rows that differ in their decision alone would be two, so equal conversations were decided alike.
  const ids = (estate.flows ?? []).map(({ from, to, port, proto }) => `${from} ${to} ${port} ${proto}`)
  const flows = (estate.flows ?? []).map((flow, at) => ({
    ...flow,
    recorded: recorded[ids.indexOf(ids[at]!)] as (typeof POLICY_DECISIONS)[number],
  }))
  const bench = await startBench(t, { estate: handMade({ ...estate, flows }), budget: 800_000 })
  try {
    await toggleRules(bench, one.toggled)
    const sleeps = (name: string) => !isOwn(estate, name)
    const atSource = () => evaluatorOf(bench, viewOf(bench, 'active'), { sleeps })
    const before = atSource()
    const isBlocked = (evaluate: typeof before, flow: HandMadeFlow) =>
      evaluate(flow.from, flow.to, onOf(flow)).decision === 'blocked'
    const outbound = flows.filter(({ from, to }) => isOwn(estate, from) && !isOwn(estate, to))
    const droppedBefore = outbound.filter((flow) => isBlocked(before, flow))
    const plan = await bench.ok('create-ringfence', { ...PAY, ...asked, detail_level: 'full', dry_run: true })
    const effects = effectsOf(plan, { ...estate, flows })
    await enforce(bench, estate, one)
    const evaluate = evaluatorOf(bench, viewOf(bench, 'active'))
    const wrong: string[] = []
    for (const [at, flow] of flows.entries()) {
      if (outbound.includes(flow)) continue
      seen.inbound += 1
      const said = effects[at]!
      if (said.size === 0) wrong.push(`${ids[at]}: nothing is said`)
      if (said.has('possibly_cut')) continue
      const { decision } = evaluate(flow.from, flow.to, onOf(flow))
      const { verdict: explained } = await explain(bench, flow)
      for (const [whose, verdict] of Object.entries({ decision, explained })) {
        if (verdict === 'uncertain' || verdict === 'split') continue
        const isLost = verdict === 'blocked'
        if (![...said].some((effect) => LOSSES.includes(effect) === isLost))
          wrong.push(`${ids[at]}: said ${[...said].join()}, and ${whose} is ${verdict}`)
      }
    }
    const after = atSource()
    for (const workload of await bench.pce.workloads.getAll())
      if (sleeps(workload.name ?? '') && workload.managed !== false)
        await bench.pce.workloads.update(workload.href, { enforcement_mode: 'idle' })
    const told = saidOutbound(plan)
    const is = { dropped: 0, blocked: 0, uncertain: 0 }
    for (const flow of outbound) {
      // What a workload drops already is not the doing of a selective ringfence, which leaves its full enforcement as it is.
      if (plan.selective === true && droppedBefore.includes(flow)) continue
      if (isBlocked(after, flow)) is.dropped += 1
      const { verdict, why = '' } = await explain(bench, flow)
      if (verdict === 'blocked') is.blocked += 1
      else if (verdict === 'uncertain' && /^[^:]*blocked/u.test(why)) is.uncertain += 1
    }
    const most = told.lost + told.open
    if (is.dropped < told.lost || is.dropped > most)
      wrong.push(`outbound: said ${told.lost} and perhaps ${told.open}, and ${is.dropped} are dropped`)
    if (is.blocked > most || is.blocked + is.uncertain < told.lost)
      wrong.push(`outbound: said ${JSON.stringify(told)}, and explain-flow ${JSON.stringify(is)}`)
    seen.outbound += outbound.length
    seen.lost += told.lost
    seen.open += told.open
    seen.estates += 1
    return wrong
  } finally {
    bench.pce.close()
    await bench.simulator.close()
  }
}

/** The case with every third flow once more, the other way round: to where the application sends. */
function widen(one: RandomCase): RandomCase {
  const { flows = [] } = one.estate
  const back = flows.flatMap(({ from, to, port, proto }, at): HandMadeFlow[] =>
    at % 3 === 0 || OURS.includes(from)
      ? []
      : [{ from: to, to: from, ...(port !== undefined && { port }), ...(proto !== undefined && { proto }) }],
  )
  const byId = new Map(back.map((flow) => [JSON.stringify(flow), flow]))
  return { ...one, estate: { ...one.estate, flows: [...flows, ...byId.values()] } }
}

t.test('what a ringfence cuts is told by rules, whatever the PCE recorded', async (t) => {
  const details = await fc.check(
    fc.asyncProperty(
      randomCase,
      fc.array(fc.constantFrom(...POLICY_DECISIONS), { minLength: 48, maxLength: 48 }),
      async (random, recorded) => {
        const wrong = await check(t, widen(random), recorded)
        if (wrong.length > 0) throw new Error(wrong.join('\n'))
      },
    ),
    RANDOM,
  )
  t.notOk(
    details.failed,
    `${String(details.errorInstance)} ${fc.defaultReportMessage(details) ?? `held for ${details.numRuns} estates`}`,
  )
  t.ok(Math.min(...Object.values(seen)) > 10, `every kind is met: ${JSON.stringify(seen)}`)
})

t.test('what the application sends is judged in the mode to come, by what is pending too', async (t) => {
  const start = (mode: 'visibility_only' | 'full') =>
    startBench(t, {
      estate: handMade({
        hosts: {
          'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode },
          'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
        },
        flows: [
          { from: 'pay-1', to: 'crm-1', port: 443, connections: 5 },
          { from: 'pay-1', to: 'crm-1', port: 22, connections: 3 },
        ],
        ruleSets: [
          {
            name: 'out',
            scope: '',
            allow: [{ from: 'app=pay', to: 'app=crm', services: [{ port: 443, proto: 6 }] }],
            deny: [{ from: 'app=pay', to: 'app=crm', services: [{ port: 22, proto: 6 }] }],
          },
        ],
      }),
    })
  const said = async ({ ok }: Bench, asked: object) => {
    const { warnings, assumes } = await ok('create-ringfence', { ...PAY, ...asked, dry_run: true })
    return [saidOutbound({ warnings }), assumes]
  }
  const bench = await start('visibility_only')
  t.same(await said(bench, {}), [{ lost: 3, open: 0 }, undefined])
  t.same(await said(bench, { selective: true }), [{ lost: 0, open: 3 }, ['P51']])
  t.same(await said(await start('full'), { selective: true }), [{ lost: 0, open: 0 }, undefined], 'dropped already')
  await toggleRules(bench, [0])
  t.same(await said(bench, {}), [{ lost: 3, open: 5 }, undefined], 'the pending end of a rule may take its traffic')
})
