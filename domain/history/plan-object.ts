import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { isDefault, isSaid } from '../policy/default-fields.js'
import { NO_CONTENT, diffFields, differs } from '../policy/diff-fields.js'
import type { AnyRule } from '../policy/rule-in-force.js'

type Emptied = Readonly<Record<string, unknown>>

/**
 * The types of objects that can be restored individually. Each type is mapped to the fields that a restoration writes,
 * each with the value that empties the field.
 */
export const OWN_FIELDS = {
  rule_sets: { name: '', description: '', enabled: true, scopes: [] },
  ip_lists: { name: '', description: '', ip_ranges: [], fqdns: [] },
  services: {
    name: '',
    description: '',
    process_name: '',
    service_ports: [],
    windows_services: [],
    windows_egress_services: [],
  },
} as const satisfies Record<string, Emptied>
export type RestorableKind = keyof typeof OWN_FIELDS
export const RESTORABLE_KINDS = Object.keys(OWN_FIELDS) as RestorableKind[]

const EITHER_RULE: Emptied = {
  enabled: true,
  description: '',
  providers: [],
  consumers: [],
  ingress_services: [],
  egress_services: [],
  unscoped_consumers: false,
  network_type: 'brn',
  log_flow: false,
  all_ips_except_for_in_consumers: false,
  all_ips_except_for_in_providers: false,
}

/** The fields of a rule that a restoration writes, each with the value that the PCE assumes if the field is not set. */
const RULE_FIELDS = {
  rules: {
    ...EITHER_RULE,
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    sec_connect: false,
    stateless: false,
    machine_auth: false,
    consuming_security_principals: [],
    use_workload_subnets: [],
    external_data_set: null,
    external_data_reference: null,
  },
  deny_rules: { ...EITHER_RULE, override: false },
} satisfies Record<string, Emptied>
type RuleList = keyof typeof RULE_FIELDS

/**
 * One write request. If it writes a rule, `of` is the href of this rule in the version to restore (in the draft if the
 * request deletes the rule). `of` is absent if the request writes the object itself.
 */
export interface Step {
  method: 'PUT' | 'POST' | 'DELETE'
  /**
   * The path of the request. For a rule in a rule set that does not exist yet, it is only the part after the rule set's
   * href.
   */
  path: string
  body: Record<string, unknown> | null
  of?: string
}

/** A field that differs between the draft and the version to restore, and that no write restores. */
export interface LeftField {
  field: string
  /** The href, in the version to restore, of the rule that has the field; absent if the object itself has the field. */
  rule?: string
  /** True if the object or rule is created again and then lacks this field. */
  isMissing: boolean
}

/** The writes that make the draft equal to the version to restore, and the differing fields that cannot be written. */
export interface Difference {
  steps: Step[]
  left: LeftField[]
}

const COLLECTIONS = { rules: 'sec_rules', deny_rules: 'deny_rules' } as const

/** Fields that are sent in a POST even if they have their defaults. The PCE requires most of them for a rule. */
const REQUIRED = new Set(['enabled', 'providers', 'consumers', 'ingress_services', 'resolve_labels_as'])

/**
 * Returns the writes that make the object in the draft equal to the object in the version to restore, and the differing
 * fields that no write restores. Only fields that differ are written.
 * @param draft the object in the draft; null if it does not exist there.
 * @param wanted the object in the version to restore, with draft hrefs.
 * @param renamed maps the href that a deleted rule had in that version to the href of the rule created in its place.
 */
export const planSteps = (
  kind: RestorableKind,
  draft: PceObject | null,
  wanted: PceObject,
  base: string,
  renamed?: ReadonlyMap<string, string>,
): Difference => planWrites({ kind, own: OWN_FIELDS[kind], base, renamed }, draft, wanted)

/** The type of an object to write, its fields with the values that empty them, and the path of its collection. */
interface Writable {
  kind: string
  own: Emptied
  base: string
  renamed?: ReadonlyMap<string, string>
}

/** Works like `planSteps`, for any type of object and any set of its fields. */
export function planWrites(
  { kind, own, base, renamed = new Map() }: Writable,
  draft: PceObject | null,
  wanted: PceObject,
): Difference {
  const { body, left } = divide(own, wanted, draft)
  const first: Step[] =
    draft === null
      ? [{ method: 'POST', path: base, body: kind === 'rule_sets' ? { enabled: true, scopes: [[]], ...body } : body }]
      : Object.keys(body).length > 0
        ? [{ method: 'PUT', path: wanted.href, body }]
        : []
  if (kind !== 'rule_sets') return { steps: first, left }
  const rules = ruleSteps(draft, wanted, renamed)
  return { steps: [...first, ...rules.steps], left: [...left, ...rules.left] }
}

/** Divides the differing fields into those that are written and those that are not restored. */
function divide(fields: Emptied, wanted: PceObject, now: PceObject | null) {
  const differing = now === null ? saidIn(wanted) : changedIn(wanted, now)
  const left = differing.flatMap(([field, value]) =>
    Object.hasOwn(fields, field) || (now === null && !hasContent(value)) ? [] : [field],
  )
  if (differs(tablesOf(wanted), tablesOf(now))) left.push(TABLES)
  const written = differing.filter(([field]) => Object.hasOwn(fields, field))
  return {
    body: Object.fromEntries(written.map(([field, value]) => [field, value == null ? fields[field] : bare(value)])),
    left: left.map((field): LeftField => ({ field, isMissing: now === null })),
  }
}

const saidIn = (wanted: PceObject) =>
  Object.entries(wanted).filter(
    ([field, value]) => field !== TABLES && !NO_CONTENT.has(field) && (REQUIRED.has(field) || !isDefault(field, value)),
  )

const changedIn = (wanted: PceObject, now: PceObject) =>
  diffFields(wanted, now).flatMap(({ field, draft: value }) => (field === TABLES ? [] : [[field, value] as const]))

const TABLES = 'ip_tables_rules'

/** Returns the content of an object's iptables rules, without records such as author and time. */
const tablesOf = (object: PceObject | null): unknown[] =>
  ((object as RuleSet | null)?.[TABLES] ?? [])
    .filter((rule) => rule.update_type !== 'delete')
    .map((rule) => bare(Object.fromEntries(Object.entries(rule).filter(([field]) => !NO_CONTENT.has(field)))))

/** Returns false for a value without content, such as an empty list, or an object whose values are all empty. */
const hasContent = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.values(value).some(hasContent) : isSaid(value)

/**
 * Plans the writes of rules. Deny rules are created first and deleted last, so that if a call fails half-way, no allow
 * rule is without the deny rules that limit it.
 */
function ruleSteps(draft: PceObject | null, wanted: PceObject, renamed: ReadonlyMap<string, string>): Difference {
  const steps: Step[] = []
  const removals: Step[] = []
  const left: LeftField[] = []
  for (const list of ['deny_rules', 'rules'] as const) {
    const collection = `${draft === null ? '' : wanted.href}/${COLLECTIONS[list]}`
    const live = new Map(
      rulesOf(draft, list).flatMap((rule) => (rule.update_type === 'delete' ? [] : [[rule.href, rule] as const])),
    )
    for (const rule of rulesOf(wanted, list)) {
      const href = renamed.get(rule.href) ?? rule.href
      const now = live.get(href)
      live.delete(href)
      const { body, left: others } = divide(RULE_FIELDS[list], rule, now ?? null)
      left.push(...others.map((one) => ({ ...one, rule: rule.href })))
      if (now === undefined) steps.push({ method: 'POST', path: collection, body, of: rule.href })
      else if (Object.keys(body).length > 0) steps.push({ method: 'PUT', path: href, body, of: rule.href })
    }
    for (const href of live.keys()) removals.unshift({ method: 'DELETE', path: href, body: null, of: href })
  }
  return { steps: [...steps, ...removals], left }
}

/**
 * Returns the object to restore with the hrefs that its parts have in the draft. These are the href of the object
 * itself, and the hrefs of equal rules that were already created in place of deleted ones, so that nothing is written
 * twice.
 */
export function alignWith(draft: PceObject, wanted: PceObject): PceObject {
  const lists = (['rules', 'deny_rules'] as const).flatMap((list) => {
    const past = rulesOf(wanted, list)
    const known = new Set(past.map(({ href }) => href))
    const live = rulesOf(draft, list).filter(({ update_type: type }) => type !== 'delete')
    const kept = new Set(live.map(({ href }) => href))
    const free = live.filter(({ href }) => !known.has(href))
    const aligned = past.map((rule) => {
      if (kept.has(rule.href)) return rule
      const at = free.findIndex((one) => Object.keys(divide(RULE_FIELDS[list], rule, one).body).length === 0)
      const [same] = at === -1 ? [] : free.splice(at, 1)
      return same === undefined ? rule : { ...rule, href: same.href }
    })
    return past.length === 0 ? [] : [[list, aligned] as const]
  })
  return { ...wanted, href: draft.href, ...(Object.fromEntries(lists) as object) }
}

const rulesOf = (object: PceObject | null, list: RuleList): AnyRule[] => (object as RuleSet | null)?.[list] ?? []

/** Returns a value in the form that the PCE accepts: references contain only the href, and null values are left out. */
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

/** Returns the hrefs of all objects to which the given writes refer. */
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
