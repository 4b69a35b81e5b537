/**
 * On random estates whose recorded decisions are planted, what a dry run of create-ringfence says of inbound traffic is what
 * explain-flow and the simulator's evaluator say once it is written, provisioned and enforced.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { evaluatorOf, viewOf } from './explained-world.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { portName } from './losses.js'
import { randomCase } from './random-estate.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const PROTOCOLS: Record<number, string> = { 6: 'tcp', 17: 'udp' }
const RANDOM = { numRuns: 25, seed: 20261129, endOnFailure: true }
const LOSSES = ['cut', 'blocked_by_override_deny']

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

/** Makes the ringfence take effect, in the mode that it is made for. */
async function enforce({ ok, pce }: Bench, estate: HandMadeEstate, asked: object): Promise<void> {
  const { ruleset, selective } = await ok('create-ringfence', { ...PAY, ...asked })
  if ((await pce.getPendingPolicyChanges()).length > 0) await ok('provision-policy', { hrefs: [ruleset.href] })
  for (const workload of await pce.workloads.getAll()) {
    const { app, env } = labelsOf(estate, workload.name ?? '')
    if (app !== 'pay' || env !== 'prod' || workload.managed === false || workload.enforcement_mode === 'full') continue
    await pce.workloads.update(workload.href, { enforcement_mode: selective === true ? 'selective' : 'full' })
  }
}

async function check(t: Test, estate: HandMadeEstate, recorded: readonly string[], asked: object): Promise<string[]> {
  // Rows that differ in their decision alone would be two, so equal conversations were decided alike.
  const ids = (estate.flows ?? []).map(({ from, to, port, proto }) => `${from} ${to} ${port} ${proto}`)
  const flows = (estate.flows ?? []).map((flow, at) => ({
    ...flow,
    recorded: recorded[ids.indexOf(ids[at]!)] as (typeof POLICY_DECISIONS)[number],
  }))
  const bench = await startBench(t, { estate: handMade({ ...estate, flows }), budget: 800_000 })
  try {
    const plan = await bench.ok('create-ringfence', { ...PAY, ...asked, detail_level: 'full', dry_run: true })
    const effects = effectsOf(plan, estate)
    await enforce(bench, estate, asked)
    const evaluate = evaluatorOf(bench, viewOf(bench, 'active'))
    const wrong: string[] = []
    for (const [at, { from, to, port, proto = 6, process, service }] of flows.entries()) {
      const said = effects[at]!
      if (said.size === 0) wrong.push(`${ids[at]}: nothing is said`)
      if (said.has('possibly_cut')) continue
      const on = {
        proto,
        ...(port !== undefined && { port }),
        ...(process && { process }),
        ...(service && { service }),
      }
      const { decision } = evaluate(from, to, on)
      const name = PROTOCOLS[proto]
      const args = { source: from, destination: to, port: port ?? 0, proto: name, lookback_days: 0 }
      const explained =
        name === undefined || from === to ? 'uncertain' : (await bench.ok('explain-flow', args)).active.verdict
      for (const [whose, verdict] of Object.entries({ decision, explained })) {
        if (verdict === 'uncertain' || verdict === 'split') continue
        const isLost = verdict === 'blocked'
        if (![...said].some((effect) => LOSSES.includes(effect) === isLost))
          wrong.push(`${ids[at]}: said ${[...said].join()}, and ${whose} is ${verdict}`)
      }
    }
    return wrong
  } finally {
    bench.pce.close()
    await bench.simulator.close()
  }
}

t.test('what a ringfence cuts is told by rules, whatever the PCE recorded', async (t) => {
  const details = await fc.check(
    fc.asyncProperty(
      randomCase,
      fc.array(fc.constantFrom(...POLICY_DECISIONS), { minLength: 24, maxLength: 24 }),
      async ({ estate, asked }, recorded) => {
        const wrong = await check(t, estate, recorded, asked)
        if (wrong.length > 0) throw new Error(wrong.join('\n'))
      },
    ),
    RANDOM,
  )
  t.notOk(
    details.failed,
    `${String(details.errorInstance)} ${fc.defaultReportMessage(details) ?? `held for ${details.numRuns} estates`}`,
  )
})
