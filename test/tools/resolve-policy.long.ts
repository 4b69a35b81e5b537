/**
 * resolve-policy against the simulator: whoever applies its rows to random flows, by the addresses and ports in them alone, decides as
 * the simulator's evaluator does. The reader of rows here is Node's own address lists, and shares no code with the tool.
 */
import { BlockList, isIPv6 } from 'node:net'
import t from 'tap'
import type { Workload } from '../../schemas/pce/workload.js'
import { casesOf, decisionOf, evaluatorOf, FLOWS_OF_CASE, flowsOf, SEED, startCase, viewOf } from './explained-world.js'
import type { AskedPort } from './explained-world.js'
import type { Bench, Json } from './harness.js'

const FLOWS = 2_000
type Said = 'yes' | 'no' | 'perhaps'
type Side = 'inbound' | 'outbound'

const family = (ip: string) => (isIPv6(ip) ? 'ipv6' : 'ipv4')

function holds(addresses: readonly string[], ip: string): boolean {
  const list = new BlockList()
  // A list with networks of IPv6 also finds the addresses of IPv4 that are mapped into them.
  for (const text of addresses.filter((one) => one.includes(':') === isIPv6(ip))) {
    const [first, last] = text.split('-') as [string, string?]
    const [network, bits] = first.split('/') as [string, string?]
    if (last !== undefined) list.addRange(first, last, family(first))
    else if (bits !== undefined) list.addSubnet(network, Number(bits), family(network))
    else list.addAddress(first, family(first))
  }
  return list.check(ip, family(ip))
}

const NAMES: Record<number, string> = { 1: 'icmp', 6: 'tcp', 17: 'udp', 47: 'gre' }

const isOn = (services: readonly string[], { port, proto }: AskedPort): boolean =>
  services.some((text) => {
    if (text === 'all') return true
    const [ports, name] = text.includes('/') ? (text.split('/') as [string, string]) : [null, text]
    if (name !== 'any' && name !== NAMES[proto]) return false
    if (ports === null) return true
    const [from = 0, to = from] = ports.split('-').map(Number)
    return port !== undefined && from <= port && port <= to
  })

function match(rows: readonly Json[], side: Side, action: string, from: string, to: string, on: AskedPort): Said {
  let said: Said = 'no'
  for (const row of rows) {
    if (row.action !== action || (row.direction !== side && row.direction !== 'both')) continue
    const isExact = holds(row.source, from) && holds(row.destination, to) && isOn(row.services, on)
    if (isExact && row.only === undefined) return 'yes'
    if (isExact || row.besides !== undefined) said = 'perhaps'
  }
  return said
}

/** What an end does by rows and by its mode, or null where the rows do not say. */
function judge(mode: string, side: Side, of: (action: string) => Said, on: AskedPort): string | null {
  if (mode === 'none' || mode === 'idle') return 'allowed'
  if (on.proto === 17 && on.port === 67) return 'allowed'
  const loss = mode === 'visibility_only' ? 'potentially_blocked' : 'blocked'
  // Whether deny rules have an effect at a source in selective mode is not settled.
  const isOpen = mode === 'selective' && side === 'outbound'
  const steps: [Said, string][] = [
    [isOpen && of('override_deny') !== 'no' ? 'perhaps' : of('override_deny'), loss],
    [of('allow'), 'allowed'],
    [isOpen && of('deny') !== 'no' ? 'perhaps' : of('deny'), loss],
    ['yes', mode === 'selective' ? 'allowed' : loss],
  ]
  const possible = new Set<string>()
  for (const [said, outcome] of steps) {
    if (said !== 'no') possible.add(outcome)
    if (said === 'yes') break
  }
  return possible.size === 1 ? [...possible][0]! : null
}

const WORST = ['blocked', 'potentially_blocked', 'allowed']
const harder = (a: string, b: string) => (WORST.indexOf(a) < WORST.indexOf(b) ? a : b)

/** All rows of a subject, page by page. */
async function rowsOf(bench: Bench, subject: Json, version: string): Promise<Json[]> {
  const rows: Json[] = []
  let cursor: string | undefined
  do {
    const page: Json = await bench.ok('resolve-policy', {
      ...subject,
      policy_version: version,
      ...(cursor !== undefined && { cursor }),
    })
    rows.push(...page.rules)
    cursor = page.next_cursor
    if (cursor === undefined && rows.length !== page.rows_total) throw new Error('rows are missing')
  } while (cursor !== undefined)
  return rows
}

t.test('rows decide about random flows as the simulator does', async (t) => {
  const counts: Record<string, number> = { flows: 0, certain: 0 }
  const add = (name: string) => (counts[name] = (counts[name] ?? 0) + 1)
  for (const [at, one] of casesOf(FLOWS / FLOWS_OF_CASE, SEED + 36).entries()) {
    await t.test(`estate ${at}`, async (t) => {
      const bench = await startCase(t, one)
      const version = at % 2 === 0 ? 'active' : 'draft'
      const truth = evaluatorOf(bench, viewOf(bench, version))
      const hosts = new Map(
        (bench.simulator.state.find('/orgs/1/workloads') as unknown as Workload[]).map((host) => [host.name, host]),
      )
      const known = new Map<string, Json[]>()
      /** The rows for an end: those of its labels, or of all rule sets if it has none. */
      const rowsAt = async ({ labels }: Workload): Promise<Json[]> => {
        const id = JSON.stringify(labels?.map(({ href }) => href))
        const before = known.get(id)
        if (before !== undefined) return before
        const subjects =
          (labels ?? []).length > 0
            ? [{ labels: labels!.map(({ href }) => href) }]
            : viewOf(bench, version).ruleSets.map(({ name }) => ({ rule_set: name }))
        const rows: Json[] = []
        for (const subject of subjects) rows.push(...(await rowsOf(bench, subject, version)))
        known.set(id, rows)
        return rows
      }
      for (const { from, to, on } of flowsOf(one, SEED + at)) {
        const [source, destination] = [hosts.get(from), hosts.get(to)]
        const addressOf = (host: Workload | undefined, name: string) => host?.interfaces?.[0]?.address ?? name
        const [src, dst] = [addressOf(source, from), addressOf(destination, to)]
        const verdicts: (string | null)[] = []
        for (const [host, side] of [
          [source, 'outbound'],
          [destination, 'inbound'],
        ] as const) {
          if (host === undefined || host.managed === false) continue
          const rows = await rowsAt(host)
          const mode = host.enforcement_mode ?? 'visibility_only'
          verdicts.push(judge(mode, side, (action) => match(rows, side, action, src, dst, on), on))
        }
        add('flows')
        const real = decisionOf(truth(from, to, on))
        const said = verdicts.includes('blocked')
          ? 'blocked'
          : verdicts.includes(null)
            ? null
            : verdicts.reduce<string>((all, verdict) => harder(all, verdict!), 'allowed')
        if (said === null) continue
        add('certain')
        add(said)
        if (said !== real) t.fail(`${version} ${from} > ${to} ${JSON.stringify(on)}: ${real}, by rows ${said}`)
      }
    })
  }
  t.pass(JSON.stringify(counts))
  t.equal(counts.flows, FLOWS)
  t.ok(counts.certain! >= counts.flows! * 0.6, 'most of them certain')
  for (const word of WORST) t.ok(counts[word]! > 50, `${word}: ${counts[word]}`)
})
