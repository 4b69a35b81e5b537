import { ToolError } from '../schemas/errors.js'
import { SCHEME } from './documents.js'

/** A tool call whose answer forms one part of a page. */
interface Section {
  name: string
  tool: string
  arguments: Record<string, unknown>
}

type Values = Readonly<Record<string, string>>

/**
 * A resource template (RFC 6570, level 1) for the pages about one type of PCE object. A page is composed of the answers
 * of several tool calls.
 */
export interface PageTemplate {
  uriTemplate: string
  name: string
  description: string
  /**
   * The variables of the template, in order. Each is mapped to the label key whose values are suggested as completions,
   * or to null if there are no completions for the variable.
   */
  variables: Readonly<Record<string, 'app' | 'env' | null>>
  /** Returns the fields at the beginning of the page. */
  headOf(values: Values, facts: PageFacts): object
  /** Returns the sections of the page. The tool call of the first section shows whether the object exists. */
  sectionsOf(values: Values, facts: PageFacts): readonly [Section, ...Section[]]
}

export interface PageFacts {
  /** The number of the organisation at the reader's PCE. */
  orgId: string
  /** The current time in milliseconds since the epoch. */
  now: number
}

const DAY_MS = 86_400_000
/** The number of days of traffic that a page covers, equal to the default of the tool enforcement-readiness. */
const LOOKBACK_DAYS = 30
/**
 * Maximum number of rows in each list on a page, by type of row. It is small, because a page is an overview; each
 * section names the call that returns all rows.
 */
const ROWS = { workloads: 25, flows: 30, ruleSets: 10 }

const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10)

export const PAGE_TEMPLATES: readonly PageTemplate[] = [
  {
    uriTemplate: `${SCHEME}ruleset/{id}`,
    name: 'Rule set',
    description: 'One draft rule set with its scopes and rules; id is the last part of its href.',
    variables: { id: null },
    headOf: ({ id }) => ({ ruleset: id }),
    sectionsOf: ({ id }, { orgId }) => [
      {
        name: 'rule_set',
        tool: 'get-rulesets',
        arguments: { href: `/orgs/${orgId}/sec_policy/draft/rule_sets/${id}` },
      },
    ],
  },
  {
    uriTemplate: `${SCHEME}application/{app}/{env}`,
    name: 'Application',
    description:
      'What an application is, who talks to it, its rule sets, its readiness for enforcement; app and env are label values.',
    variables: { app: 'app', env: 'env' },
    headOf: ({ app, env }) => ({ application: { app, env }, lookback_days: LOOKBACK_DAYS }),
    sectionsOf({ app, env }, { now }) {
      const labels = [
        { key: 'app', value: app },
        { key: 'env', value: env },
      ]
      const window = { start_date: dayOf(now - LOOKBACK_DAYS * DAY_MS), end_date: dayOf(now) }
      const flows = (end: string, peer: string) => ({
        ...window,
        [end]: labels,
        group_by: [peer, 'port', 'proto', 'policy_decision'],
        max_results: ROWS.flows,
      })
      return [
        { name: 'workloads', tool: 'get-workloads', arguments: { labels, max_results: ROWS.workloads } },
        { name: 'inbound', tool: 'get-traffic-flows', arguments: flows('include_destinations', 'source_app') },
        { name: 'outbound', tool: 'get-traffic-flows', arguments: flows('include_sources', 'dest_app') },
        { name: 'rule_sets', tool: 'get-rulesets', arguments: { labels, max_results: ROWS.ruleSets } },
        {
          name: 'readiness',
          tool: 'enforcement-readiness',
          arguments: { app_name: app, env_name: env, lookback_days: LOOKBACK_DAYS },
        },
      ]
    },
  },
]

/** Returns the names of the tools whose answers form a page. */
export function toolsOf(template: PageTemplate): string[] {
  const values = Object.fromEntries(Object.keys(template.variables).map((name) => [name, 'x']))
  return template.sectionsOf(values, { orgId: '1', now: 0 }).map(({ tool }) => tool)
}

/**
 * Maximum length of a URI, in characters. It leaves room for two label values of maximum length with every byte
 * percent-encoded.
 */
const LONGEST_URI = 5_000
/** Maximum length of a decoded value in a URI; it is the maximum length of a label value. */
const LONGEST_VALUE = 255
/**
 * Matches one segment of a path (RFC 3986, 3.3). The values in a URI are encoded as such segments (RFC 6570, 3.2.2).
 */
const SEGMENT = /^(?:[\w.~!$&'()*+,;=:@-]|%[\dA-Fa-f]{2})+$/
const ID = /^[\w-]{1,64}$/

/**
 * Returns the page that a URI names, with decoded values; null if there is no such page. Throws ToolError
 * `invalid_argument` for an impossible value.
 */
export function matchPage(uri: string): { template: PageTemplate; values: Record<string, string> } | null {
  if (uri.length > LONGEST_URI) return null
  const parts = uri.split('/')
  for (const template of PAGE_TEMPLATES) {
    const wanted = template.uriTemplate.split('/')
    if (wanted.length !== parts.length) continue
    if (!wanted.every((part, at) => part.startsWith('{') || part === parts[at])) continue
    const raw = parts.filter((_part, at) => wanted[at]!.startsWith('{'))
    const names = Object.keys(template.variables)
    return { template, values: Object.fromEntries(names.map((name, at) => [name, decode(name, raw[at]!)])) }
  }
  return null
}

/**
 * For a URI that begins like a template but has too few or too many values, returns the template, and a sentence that
 * says what is wrong. Returns null for any other URI.
 */
export function nearPage(uri: string): { template: PageTemplate; why: string } | null {
  if (uri.length > LONGEST_URI) return null
  for (const template of PAGE_TEMPLATES) {
    const kind = template.uriTemplate.slice(0, template.uriTemplate.indexOf('/{'))
    if (uri !== kind && !uri.startsWith(`${kind}/`)) continue
    const names = Object.keys(template.variables)
    const given = uri === kind ? 0 : uri.slice(kind.length + 1).split('/').length
    if (given === names.length) continue
    const missing = names.slice(given).join(' and ')
    return {
      template,
      why: given < names.length ? `${missing} missing` : 'too many values: write a / in a value as %2F',
    }
  }
  return null
}

function decode(name: string, raw: string): string {
  const refuse = (why: string) => new ToolError('invalid_argument', `${name}: ${why}`, { argument: name })
  if (raw === '') throw refuse('must not be empty')
  if (!SEGMENT.test(raw)) throw refuse('percent-encode what is not a letter, digit or one of -._~ (RFC 6570)')
  let value: string
  try {
    value = decodeURIComponent(raw)
  } catch {
    throw refuse('the percent-encoded bytes are not UTF-8')
  }
  if (value.length > LONGEST_VALUE) throw refuse(`at most ${LONGEST_VALUE} characters`)
  if (value.trim() === '') throw refuse('must not be empty')
  if (name === 'id' && !ID.test(value)) throw refuse('the last part of an href: letters, digits, - and _')
  return value
}
