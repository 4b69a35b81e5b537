import type { ShownCall, ShownField } from '../../schemas/approvals.js'
import type { RingfenceAnswer } from '../../schemas/ringfence.js'
import { countOf, windowInWords, wholeNumber } from '../picture.js'

/** What happens to a source when the ringfence is enforced, such as being cut off or let in by a new rule. */
export type Fate = 'cut' | 'perhaps-cut' | 'let-in' | 'allowed'

export const FATE_WORDS: Readonly<Record<Fate, string>> = {
  cut: 'would be cut',
  'perhaps-cut': 'perhaps cut',
  'let-in': 'let in by a new rule',
  allowed: 'allowed already',
}

/** A source, or several similar sources together, that reaches the application. */
export interface RingfenceSource {
  name: string
  fate: Fate
  /** The services that the source reaches, such as `443/tcp`. */
  services: readonly string[]
  /** Additional information about the source, for people. */
  detail: string
}

/** An application, and the sources and destinations of its traffic in relation to its ringfence. */
export interface Ringfence {
  name: string
  ruleSet: string
  /** Short statements about the application's workloads: how many there are, and in which enforcement modes. */
  inside: readonly string[]
  /** The sources, sorted by what happens to them, worst first. */
  sources: readonly RingfenceSource[]
  /** The destinations to which the application connects. The ringfence has no rules for them. */
  destinations: readonly { name: string; services: readonly string[]; detail: string }[]
  /** True if a rule denies all traffic that the ringfence does not allow. */
  isSelective: boolean
}

export interface RingfenceFacts {
  ringfences: readonly Ringfence[]
  notes: readonly string[]
  warnings: readonly string[]
}

type Answer = RingfenceAnswer & {
  window?: { start: string; end: string }
  flows_truncated?: boolean
  truncation_note?: string
}

/** Reads an answer of create-ringfence, either from a real run or from a dry run. */
export function readRingfence(answer: Answer): RingfenceFacts {
  const { app, env, workloads, enforcement_mode: mode, ruleset, selective } = answer
  const modes = Object.entries(workloads.enforcement_modes).map(
    ([name, count]) => `${wholeNumber(count)} ${name.replace('_', ' ')}`,
  )
  return {
    ringfences: [
      {
        name: `${app} (${env})`,
        ruleSet: ruleset.name,
        isSelective: selective,
        inside: [countOf(workloads.total, 'workload'), ...modes],
        sources: [...listLosses(answer), ...(hasPlan(answer) ? listLetIn(answer) : listAllowed(answer))],
        destinations: (answer.outbound_remote_apps ?? []).map((one) => ({
          name: `${one.app} (${one.env})`,
          services: portsOf(one.observed_ports),
          detail: countOf(one.connections, 'connection'),
        })),
      },
    ],
    notes: [
      answer.message,
      ...(answer.window === undefined
        ? []
        : [
            `Traffic ${windowInWords(answer.window)}: ${countOf(answer.flows_analysed.inbound, 'row')} to it, ${wholeNumber(answer.flows_analysed.outbound)} from it.`,
          ]),
      ...(mode === undefined
        ? []
        : [`Made for ${mode} enforcement: what is cut is cut once its workloads are in that mode.`]),
      ...(hasPlan(answer) ? [] : ['Services and destinations are in the plan, which a dry run shows.']),
      ...(answer.truncation_note === undefined ? [] : [`Not everything is here. ${answer.truncation_note}`]),
    ],
    warnings: answer.warnings,
  }
}

const listLosses = ({ would_be_cut: losses }: Answer): RingfenceSource[] =>
  losses.map(({ effect, kind, source, sources, connections, ports, depends_on: depends }) => ({
    name: sources > 1 ? `${source} and ${wholeNumber(sources - 1)} more` : source,
    fate: effect === 'possibly_cut' ? 'perhaps-cut' : 'cut',
    services: ports,
    detail: [
      kind.replaceAll('_', ' '),
      countOf(connections, 'connection'),
      ...(effect === 'blocked_by_override_deny' ? ['by an override deny rule'] : []),
      ...(depends === undefined ? [] : [depends]),
    ].join(', '),
  }))

/** Returns true if the result of create-ringfence contains the whole plan. The short result of a real run does not. */
const hasPlan = (answer: Answer) => answer.inbound_remote_apps !== undefined

/** Lists the applications that the rules of a written ringfence let in, new rules first. */
const listAllowed = ({ ruleset: { rules = [] }, skipped_existing_rules: existing }: Answer): RingfenceSource[] => [
  ...rules.flatMap((rule) => showAllowed(rule, 'let-in')),
  ...existing.flatMap((rule) => showAllowed(rule, 'allowed')),
]

const showAllowed = ({ app, env }: { app?: string; env?: string }, fate: Fate): RingfenceSource[] =>
  app === undefined ? [] : [{ name: `${app} (${env ?? ''})`, fate, services: ['as planned'], detail: 'allow rule' }]

function listLetIn({
  inbound_remote_apps: remotes = [],
  would_be_cut: losses,
  infrastructure_sources: infrastructure = [],
}: Answer): RingfenceSource[] {
  const lost = new Set(losses.flatMap(({ kind, source }) => (kind === 'application' ? [source] : [])))
  const tiers = new Map(infrastructure.map(({ app, env, tier }) => [`${app} (${env})`, tier]))
  return remotes
    .flatMap((one): RingfenceSource[] => {
      const name = `${one.app} (${one.env})`
      const isIn = one.rule === 'new' || one.rule === 'existing'
      if (!isIn && (lost.has(name) || one.coverage !== 'already_allowed')) return []
      const tier = tiers.get(name)
      return [
        {
          name,
          fate: one.coverage === 'already_allowed' ? 'allowed' : 'let-in',
          services: portsOf(one.observed_ports),
          detail: [countOf(one.connections, 'connection'), ...(tier === undefined ? [] : [tier])].join(', '),
        },
      ]
    })
    .sort((a, b) => Number(a.fate === 'allowed') - Number(b.fate === 'allowed'))
}

type Ports = NonNullable<Answer['outbound_remote_apps']>[number]['observed_ports']

const PROTOCOLS: Readonly<Record<number, string>> = { 1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'icmpv6' }

const portsOf = (ports: Ports): string[] => [
  ...new Set(
    ports.map(({ port, proto }) => {
      const name = proto === null ? '-' : (PROTOCOLS[proto] ?? String(proto))
      return (proto === 6 || proto === 17) && port !== null ? `${port}/${name}` : name
    }),
  ),
]

/**
 * Reads the ringfences that the approval page shows to a person who decides on a call. Returns null if the call creates
 * no ringfence.
 */
export function readShownRingfences(shown: ShownCall): RingfenceFacts | null {
  const ringfences = shown.objects.flatMap(({ name = '', fields, parts = [] }): Ringfence[] => {
    const application = textOf(fields, 'application')
    if (application === null) return []
    const rules = parts.map((part) => ({
      kind: part.kind,
      from: textOf(part.fields, 'consumers') ?? '',
      services: textOf(part.fields, 'services') ?? '',
    }))
    const lost = fields.find(({ path }) => path === 'would_lose_traffic')?.after
    const workloads = fields.find(({ path }) => path === 'workloads')?.after
    return [
      {
        name: application,
        ruleSet: name,
        inside: typeof workloads === 'number' ? [countOf(workloads, 'workload')] : [],
        isSelective: rules.some(({ kind }) => kind === 'deny rule'),
        sources: [
          ...(Array.isArray(lost) ? (lost as ShownLoss[]) : []).map(readLoss),
          ...rules
            .filter(({ kind }) => kind === 'allow rule')
            .map(({ from, services }): RingfenceSource => ({
              name: from,
              fate: 'let-in',
              services: [services],
              detail: 'allow rule',
            })),
        ],
        destinations: [],
      },
    ]
  })
  return ringfences.length === 0 ? null : { ringfences, notes: [], warnings: [] }
}

/** A source that would lose traffic, as the approval page shows it. */
interface ShownLoss {
  source: string
  ports: readonly string[]
  connections: number
  certain?: false
}

const readLoss = ({ source, ports, connections, certain }: ShownLoss): RingfenceSource => ({
  name: source,
  fate: certain === false ? 'perhaps-cut' : 'cut',
  services: [ports.join(', ')],
  detail: countOf(connections, 'connection'),
})

function textOf(fields: readonly ShownField[], path: string): string | null {
  const value = fields.find((field) => field.path === path)?.after
  return typeof value === 'string' ? value : null
}
