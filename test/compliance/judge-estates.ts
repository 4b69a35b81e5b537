/**
 * compliance-check on small estates. A simulator takes longer to start than to ask, so the cases of a table share one: each is an
 * island in it, with hosts, applications and rule sets of its own.
 */
import type { Test } from 'tap'
import {
  handMade,
  type HandMadeEstate,
  type HandMadeFlow,
  type HandMadeHost,
  type HandMadeRuleSet,
} from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

export const PAYMENTS = { app_name: 'payments', env_name: 'prod' }
export const tcp = (...ports: number[]) => ports.map((port) => ({ port, proto: 6 }))

/** A server of payments (prod) with complete labels. */
export const server = (mode: HandMadeHost['mode'], ip = '10.0.0.1', role = 'web'): HandMadeHost => ({
  ip,
  labels: `app=payments env=prod role=${role} loc=eu`,
  ...(mode !== undefined && { mode }),
})
export const PAIR = (mode: HandMadeHost['mode']) => ({ web: server(mode), db: server(mode, '10.0.0.2', 'db') })
export const CRM: HandMadeHost = { ip: '10.0.1.1', labels: 'app=crm env=prod role=web loc=eu', mode: 'full' }
export const STRAY: HandMadeHost = { ip: '10.0.2.1', mode: 'full' }
export const LEGACY: HandMadeHost = { ip: '10.0.3.1', labels: 'app=legacy', mode: 'full' }

/** Traffic without any risk in it. */
export const INSIDE: HandMadeFlow = { from: 'db', to: 'web' }

/** Allows payments everything, in and out, so that its traffic is allowed by a rule. */
export const OPEN: HandMadeRuleSet = {
  name: 'open',
  scope: '',
  allow: [
    { from: 'any', to: 'app=payments' },
    { from: 'ams', to: 'app=payments' },
    { from: 'app=payments', to: 'any' },
    { from: 'app=payments', to: 'ams' },
  ],
}
/** The same on one port. */
export const OPEN_ON = (...ports: number[]): HandMadeRuleSet => ({
  ...OPEN,
  allow: OPEN.allow!.map((rule) => ({ ...rule, services: tcp(...ports) })),
})
export const RINGFENCE: HandMadeRuleSet = {
  name: 'RF-payments-prod',
  scope: 'app=payments env=prod',
  allow: [{ from: 'ams', to: 'ams' }],
}

export const start = (t: Test, estate: HandMadeEstate): Promise<Bench> => startBench(t, { estate: handMade(estate) })

/** The findings of an answer by the id of their check. */
export const byId = (answer: Json): Record<string, Json> =>
  Object.fromEntries(answer.findings.map((finding: Json) => [finding.id, finding]))

export const statuses = (found: Record<string, Json>) =>
  Object.fromEntries(Object.entries(found).map(([id, { status }]) => [id, status]))

/** The findings of a framework about one estate of its own. */
export async function judge(
  t: Test,
  framework: string,
  estate: HandMadeEstate,
  args: object = PAYMENTS,
): Promise<Record<string, Json>> {
  return byId(await (await start(t, estate)).ok('compliance-check', { framework, ...args }))
}

/** The findings of several frameworks about each of several estates, in one simulator. */
export async function judgeAll(
  t: Test,
  estates: readonly HandMadeEstate[],
  frameworks: readonly string[],
): Promise<Record<string, Json>[]> {
  const bench = await start(t, asIslands(estates))
  const found: Record<string, Json>[] = []
  for (const at of estates.keys()) {
    const args = { ...PAYMENTS, app_name: `payments${markOf(at)}` }
    const findings: Record<string, Json> = {}
    for (const framework of frameworks)
      Object.assign(findings, byId(await bench.ok('compliance-check', { framework, ...args })))
    found.push(JSON.parse(JSON.stringify(findings).replaceAll(markOf(at), '')) as Record<string, Json>)
  }
  return found
}

/** Status by check, in the order of the checks; the counts of the first, and how long its lists are. */
type Case = [estate: HandMadeEstate, statuses: string, counts?: Record<string, number>]

/**
 * Asserts a table: what is the case → its estate (over what all cases have in common), the status of each check, and counts of the
 * first check's evidence; `flows`, `rules` and `workloads` count what is listed.
 */
export async function expectVerdicts(
  t: Test,
  checks: Readonly<Record<string, string>>,
  common: HandMadeEstate,
  cases: Readonly<Record<string, Case>>,
): Promise<void> {
  const ids = Object.keys(checks)
  const estates = Object.values(cases).map(([estate]) => ({ ...common, ...estate }))
  const all = await judgeAll(t, estates, [...new Set(Object.values(checks))])
  const found = Object.entries(cases).map(([what, [, , counts]], at) => {
    const findings = ids.map((id) => all[at]![id])
    const evidence = findings[0].evidence ?? { counts: {} }
    const counted = Object.keys(counts ?? {}).map((key) => {
      const listed = key === 'flows' || key === 'rules' || key === 'workloads'
      return [key, listed ? (evidence[key]?.length ?? 0) : evidence.counts[key]]
    })
    const is = findings.map(({ status }) => status).join(' ')
    return [what, counts === undefined ? [is] : [is, Object.fromEntries(counted)]]
  })
  t.same(
    Object.fromEntries(found),
    Object.fromEntries(Object.entries(cases).map(([what, [, ...expected]]) => [what, expected])),
  )
}

/** In every name of an island; no test has it in a text of its own. */
const markOf = (island: number) => `~${String(island).padStart(2, '0')}`

function asIslands(estates: readonly HandMadeEstate[]): HandMadeEstate {
  const all = {
    hosts: {} as Record<string, HandMadeHost>,
    flows: [] as HandMadeFlow[],
    ruleSets: [] as HandMadeRuleSet[],
  }
  for (const [at, { hosts = {}, flows = [], ruleSets = [] }] of estates.entries()) {
    const mark = markOf(at)
    const ownApps = (text: string) => text.replaceAll(/\bapp=[a-z]+/g, `$&${mark}`)
    const nameOf = (name: string) => (Object.hasOwn(hosts, name) ? `${name}${mark}` : name)
    for (const [name, { ip, labels, ...host }] of Object.entries(hosts)) {
      const own = ip.replace(/^10\.0\./, `10.${100 + at}.`).replace(/^2001:db8::/, `2001:db8:${at + 1}::`)
      all.hosts[nameOf(name)] = { ...host, ip: own, ...(typeof labels === 'string' && { labels: ownApps(labels) }) }
    }
    all.flows.push(...flows.map((flow) => ({ ...flow, from: nameOf(flow.from), to: nameOf(flow.to) })))
    for (const set of ruleSets) {
      const own = JSON.parse(ownApps(JSON.stringify(set))) as HandMadeRuleSet
      const name = set.name.replace('payments', `payments${mark}`)
      all.ruleSets.push({ ...own, name: name === set.name ? `${name}${mark}` : name })
    }
  }
  return { ...all, ipLists: Object.assign({}, ...estates.map(({ ipLists }) => ipLists)) as Record<string, string[]> }
}
