import type { ShownCall, ShownEffect, ShownObject } from '../../schemas/approvals.js'
import type { PolicyChange, RuleChangeShown } from '../../schemas/policy-changes.js'
import { countOf, wholeNumber } from '../picture.js'

/**
 * A field whose value changes. `before` is missing if the field did not exist before the change, `after` if it no
 * longer exists afterwards.
 */
export interface FieldDiff {
  field: string
  before?: unknown
  after?: unknown
}

/** An object, or a rule inside an object, before and after a change. */
export interface ChangedObject {
  kind: string
  name: string
  change: 'create' | 'update' | 'delete' | 'unknown'
  effect: ShownEffect | undefined
  /** Remarks about the change: its effect, its risks, and problems such as an object that could not be read. */
  remarks: readonly string[]
  fields: readonly FieldDiff[]
  rules: readonly ChangedObject[]
}

export interface ChangeFacts {
  objects: readonly ChangedObject[]
  notes: readonly string[]
  warnings: readonly string[]
}

/** The parts of an answer of compare-draft-active that a picture needs. */
export interface ChangeAnswer {
  total_pending_changes: number
  summary?: string
  message?: string
  meanings?: Readonly<Record<string, string>>
  changes: Readonly<Record<string, readonly Partial<PolicyChange>[]>>
}

const DEEDS: Readonly<Record<string, ChangedObject['change']>> = {
  created: 'create',
  updated: 'update',
  deleted: 'delete',
}
const RULE_DEEDS = { added: 'create', changed: 'update', removed: 'delete' } as const

/** Reads the pages of an answer of compare-draft-active, and sorts the changed objects by effect, worst first. */
export function readChanges(pages: readonly ChangeAnswer[]): ChangeFacts {
  const objects = pages.flatMap(({ changes }) =>
    Object.entries(changes).flatMap(([group, list]) =>
      list.map((change) => readChange(change, DEEDS[group] ?? 'unknown')),
    ),
  )
  const total = pages[0]?.total_pending_changes ?? 0
  const isWhole = objects.length === total
  const said = pages.flatMap(({ message }) => message ?? [])
  return {
    objects: worstFirst(objects),
    warnings: pages.flatMap(({ summary }) => summary ?? []).slice(0, isWhole && pages.length === 1 ? 1 : 0),
    notes: [
      ...said,
      `${countOf(total, 'change')} ${total === 1 ? 'is' : 'are'} pending${isWhole ? '' : `, of which ${wholeNumber(objects.length)} are here`}.`,
    ],
  }
}

const EFFECTS: readonly (ShownEffect | undefined)[] = [
  'widening',
  'mixed',
  'undecided',
  undefined,
  'narrowing',
  'neutral',
]

const rankOf = ({ effect }: ChangedObject) => EFFECTS.indexOf(effect)

const worstFirst = (objects: readonly ChangedObject[]) => objects.toSorted((a, b) => rankOf(a) - rankOf(b))

type Judged = Pick<Partial<PolicyChange>, 'effect' | 'effect_note' | 'effect_by_rule_type'>

/**
 * Determines the effect of a change, in the same words as on the approval page. If the answer does not state the
 * effect, the result is `mixed` or `undecided`.
 */
const effectOf = ({ effect, effect_note: note, effect_by_rule_type: byType }: Judged): ShownEffect =>
  effect ?? (byType !== undefined || note?.startsWith('Mixed') === true ? 'mixed' : 'undecided')

/**
 * Returns the stated effect of a rule. If none is stated for the rule itself, it is the effect of its rule set, or the
 * one stated for all rules of its type in that rule set.
 */
function effectOfRule(rule: RuleChangeShown, { effect, effect_by_rule_type: byType }: Judged): Judged {
  if (rule.effect !== undefined || rule.effect_note !== undefined || rule.effect_by_rule_type !== undefined) return rule
  const ofKind = effect ?? byType?.[rule.rule_type === 'allow' ? 'allow' : 'deny']
  return ofKind === undefined || ofKind === 'mixed' ? rule : { effect: ofKind }
}

function readChange(change: Partial<PolicyChange>, deed: ChangedObject['change']): ChangedObject {
  const {
    type = '',
    name = '',
    href = '',
    risks = [],
    effect_note: why,
    diff_error: error,
    omitted,
    fields = [],
    rules = [],
  } = change
  return {
    kind: type.replaceAll('_', ' ').replace(/s$/, ''),
    name: name === '' ? href : name,
    change: deed,
    effect: effectOf(change),
    remarks: [
      ...(why === undefined ? [] : [why]),
      ...risks.map((risk) => risk.replaceAll('_', ' ')),
      ...(error === undefined ? [] : [`Could not be read: ${error}`]),
      ...(omitted === undefined ? [] : [omitted]),
    ],
    fields: fields.map(diffOf),
    rules: rules.map((rule) => ({
      kind: `${rule.rule_type.replaceAll('_', ' ')} rule`,
      name: rule.rule ?? '',
      change: RULE_DEEDS[rule.change],
      effect: effectOf(effectOfRule(rule, change)),
      remarks: [
        ...(rule.effect_note === undefined ? [] : [rule.effect_note]),
        ...(rule.risks ?? []).map((risk) => risk.replaceAll('_', ' ')),
      ],
      fields: (rule.fields ?? []).map(diffOf),
      rules: [],
    })),
  }
}

function diffOf({ field, draft, active }: { field: string; draft?: unknown; active?: unknown }): FieldDiff {
  return {
    field,
    ...(active !== null && active !== undefined && { before: active }),
    ...(draft !== null && draft !== undefined && { after: draft }),
  }
}

/** Reads the changes that the approval page shows to a person who decides on a call, worst first. */
export function readShownChanges(shown: ShownCall): ChangeFacts {
  return { objects: worstFirst(shown.objects.map(readShown)), notes: [], warnings: [] }
}

function readShown(object: ShownObject): ChangedObject {
  const { kind, name, href, change, effect, effect_note: why, warnings = [], note, fields, parts = [] } = object
  return {
    kind,
    name: name ?? href ?? '',
    change,
    effect,
    remarks: [...(why === undefined ? [] : [why]), ...warnings, ...(note === undefined ? [] : [note])],
    fields: fields.map(({ path, ...sides }) => ({ field: path, ...sides })),
    rules: parts.map(readShown),
  }
}

/**
 * Returns the value of a field as short strings: one for each entry of a list, in the same order, or a single one for
 * any other value.
 */
export function partsOf(value: unknown): string[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.length === 0 ? ['none'] : value.map(shorten)
  return [shorten(value)]
}

const PROTOCOLS: Readonly<Record<string, string>> = { 1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'icmpv6' }

/**
 * The fields that are left out when an object is shown as a short string, because they add little to the object's name.
 */
const QUIET = new Set(['href', 'exclusion'])

function shorten(value: unknown): string {
  if (typeof value === 'string') return value === '' ? 'empty' : value
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? ''
  if (Array.isArray(value)) return value.map(shorten).join(' ')
  const members = value as Record<string, unknown>
  const { key, value: own, name, actors, port, to_port: toPort, proto, exclusion } = members
  const prefix = exclusion === true ? 'not ' : ''
  if (typeof key === 'string' && typeof own === 'string') return `${prefix}${key}=${own}`
  if (typeof name === 'string' && name !== '') return prefix + name
  if (actors !== undefined) return actors === 'ams' ? 'all workloads' : shorten(actors)
  if (proto !== undefined) {
    const ports =
      port === undefined || port === null
        ? ''
        : `${shorten(port)}${toPort === undefined || toPort === null ? '' : `-${shorten(toPort)}`}/`
    return ports + (PROTOCOLS[shorten(proto)] ?? shorten(proto))
  }
  if (typeof members.from_ip === 'string')
    return `${prefix}${members.from_ip}${typeof members.to_ip === 'string' ? `-${members.to_ip}` : ''}`
  const shown = Object.entries(members).filter(([member]) => !QUIET.has(member))
  const [only] = shown
  if (shown.length === 1 && only !== undefined && typeof only[1] === 'object') return prefix + shorten(only[1])
  if (shown.length === 0) return typeof members.href === 'string' ? members.href : 'empty'
  return prefix + shown.map(([member, inner]) => `${member} ${shorten(inner)}`).join(', ')
}
