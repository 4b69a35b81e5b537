import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { isDefault } from '../policy/default-fields.js'
import { NO_CONTENT, diffFields } from '../policy/diff-fields.js'
import type { AnyRule } from '../policy/rule-in-force.js'

/** The kinds of objects that can be put back one by one, with their fields that a PCE accepts in a write. */
const OWN_FIELDS = {
  rule_sets: ['name', 'description', 'enabled', 'scopes'],
  ip_lists: ['name', 'description', 'ip_ranges', 'fqdns'],
  services: ['name', 'description', 'process_name', 'service_ports', 'windows_services', 'windows_egress_services'],
} as const
export type RestorableKind = keyof typeof OWN_FIELDS
export const RESTORABLE_KINDS = Object.keys(OWN_FIELDS) as RestorableKind[]

/** One write. `of` is the href of the version's rule that the write puts back; absent for the object itself. */
export interface Step {
  method: 'PUT' | 'POST' | 'DELETE'
  /** The path; of a rule in a rule set that does not exist yet, only what follows the href of the rule set. */
  path: string
  body: Record<string, unknown> | null
  of?: string
}

const COLLECTIONS = { rules: 'sec_rules', deny_rules: 'deny_rules' } as const

/** Fields that a new rule has to have, even with their defaults. */
const REQUIRED = new Set(['enabled', 'providers', 'consumers', 'ingress_services', 'resolve_labels_as'])

/**
 * Returns the writes that make the draft what the version had; none if it already is. Only what differs is written.
 * @param draft the object in the draft; null if it does not exist there.
 * @param wanted the object in the version, with draft hrefs.
 * @param renamed the hrefs of rules that were created in place of deleted ones, by the hrefs in the version.
 */
export function planSteps(
  kind: RestorableKind,
  draft: PceObject | null,
  wanted: PceObject,
  base: string,
  renamed: ReadonlyMap<string, string> = new Map(),
): Step[] {
  const own = new Set<string>(OWN_FIELDS[kind])
  const differing = diffFields(wanted, draft).filter(({ field }) => own.has(field))
  const sent = draft === null ? differing.filter(({ draft: value }) => value !== null) : differing
  const body = Object.fromEntries(sent.map(({ field, draft: value }) => [field, toWire(field, value)]))
  const first: Step[] =
    draft === null
      ? [{ method: 'POST', path: base, body: kind === 'rule_sets' ? { enabled: true, scopes: [[]], ...body } : body }]
      : sent.length > 0
        ? [{ method: 'PUT', path: wanted.href, body }]
        : []
  return kind === 'rule_sets' ? [...first, ...ruleSteps(draft, wanted, renamed)] : first
}

function ruleSteps(draft: PceObject | null, wanted: PceObject, renamed: ReadonlyMap<string, string>): Step[] {
  const steps: Step[] = []
  for (const list of ['rules', 'deny_rules'] as const) {
    const collection = `${draft === null ? '' : wanted.href}/${COLLECTIONS[list]}`
    const live = new Map(
      rulesOf(draft, list).flatMap((rule) => (rule.update_type === 'delete' ? [] : [[rule.href, rule] as const])),
    )
    for (const rule of rulesOf(wanted, list)) {
      const href = renamed.get(rule.href) ?? rule.href
      const now = live.get(href)
      live.delete(href)
      if (now === undefined) steps.push({ method: 'POST', path: collection, body: newRule(rule), of: rule.href })
      else {
        const fields = diffFields(rule, now)
        const body = Object.fromEntries(fields.map(({ field, draft: value }) => [field, toWire(field, value)]))
        if (fields.length > 0) steps.push({ method: 'PUT', path: href, body, of: rule.href })
      }
    }
    for (const href of live.keys()) steps.push({ method: 'DELETE', path: href, body: null, of: href })
  }
  return steps
}

const rulesOf = (object: PceObject | null, list: 'rules' | 'deny_rules'): AnyRule[] =>
  (object as RuleSet | null)?.[list] ?? []

const newRule = (rule: AnyRule): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(rule).flatMap(([field, value]) =>
      NO_CONTENT.has(field) || (isDefault(field, value) && !REQUIRED.has(field))
        ? []
        : [[field, toWire(field, value)] as const],
    ),
  )

/** Texts and flags that are emptied with these values, because a PCE does not take null for them. */
const EMPTY: Readonly<Record<string, unknown>> = {
  description: '',
  enabled: true,
  network_type: 'brn',
  process_name: '',
}
const FLAGS = new Set(['unscoped_consumers', 'sec_connect', 'stateless', 'machine_auth', 'log_flow', 'override'])

/** Returns a field as a PCE takes it: references by href alone, nothing that is null, and empty for what was unset. */
function toWire(field: string, value: unknown): unknown {
  if (value !== null) return bare(value)
  if (field in EMPTY) return EMPTY[field]
  return FLAGS.has(field) || field.startsWith('all_ips_except_for_in_') ? false : []
}

function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare)
  if (typeof value !== 'object' || value === null) return value
  const { href } = value as { href?: unknown }
  if (typeof href === 'string') return { href }
  const said = Object.entries(value).filter(
    ([field, inner]) => inner !== null && !(field === 'exclusion' && inner === false),
  )
  return Object.fromEntries(said.map(([field, inner]) => [field, bare(inner)]))
}

/** Returns the hrefs of everything that these writes refer to. */
export function referencesIn(steps: readonly Step[]): string[] {
  const hrefs = new Set<string>()
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (typeof value === 'object' && value !== null)
      for (const [field, inner] of Object.entries(value))
        if (field === 'href' && typeof inner === 'string') hrefs.add(inner)
        else collect(inner)
  }
  for (const { body } of steps) collect(body)
  return [...hrefs]
}
