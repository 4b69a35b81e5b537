import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { refuseTakenName } from '../drafts/create-named.js'
import { orderOf } from '../drafts/order-of.js'
import { explainPending } from '../drafts/pending-deletion.js'
import { warnOfOthers } from '../drafts/warn-of-others.js'
import { createPolicyLookups, isNamedKind, nounOf, type PolicyLookups } from '../inventory/find-object.js'
import { loadLabels } from '../inventory/labels.js'
import { parseHref, toDraftHref, toVersionHref } from '../inventory/parse-href.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { readRuleSets } from '../inventory/require-rule-shape.js'
import { describeAgainst } from '../policy/describe-changes.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { inDraftForm } from './load-policy.js'
import {
  RESTORABLE_KINDS,
  planSteps,
  referencesIn,
  type LeftField,
  type RestorableKind,
  type Step,
} from './plan-object.js'
import { chooseVersion, loadVersions } from './read-versions.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** Which object to put back, and to which version. */
export interface ObjectArguments {
  version: number
  href?: string
  name?: string
  kind?: RestorableKind
}

export interface ObjectPlan {
  kind: RestorableKind
  /** The object as messages name it, such as `the rule set "Payments"`. */
  what: string
  version: string
  /** The object in the draft; null if it was deleted since. */
  draft: PceObject | null
  wanted: PceObject
  steps: Step[]
  /** What differs and is not written, which the warnings name. */
  left: LeftField[]
  warnings: string[]
}

/**
 * Plans the writes that put one object back to what a version had, and checks them: names, pending deletions and every
 * reference, so that nothing is written that the PCE must refuse.
 * @throws {ToolError} missing_identifier, invalid_href, not_found for a version or object, ambiguous_name,
 * pending_changes if the deletion of the object is pending, already_exists if its name is taken, and not_found with
 * `references` if it refers to objects that were deleted since.
 */
export async function planObject(ctx: Context, args: ObjectArguments): Promise<ObjectPlan> {
  const { pce, signal } = ctx
  const { name: version } = chooseVersion(await loadVersions(pce, signal), args.version)
  const labels = await loadLabels(pce, ctx, 'fresh')
  const now = createPolicyLookups(pce, labels, 'draft', signal)
  const { kind, href } = await identify(args, now, createPolicyLookups(pce, labels, args.version, signal), pce.orgId)
  const wanted = await readObject(ctx, kind, toVersionHref(href, args.version))
  const what = `the ${nounOf(kind)} ${quote(typeof wanted?.name === 'string' ? wanted.name : href)}`
  if (wanted === null)
    throw new ToolError('not_found', `${version} has no ${nounOf(kind)} ${href}. Nothing was written.`, {
      version: args.version,
      href,
    })
  const draft = await readObject(ctx, kind, toDraftHref(href))
  if (draft?.update_type === 'delete') {
    const text = `The deletion of ${what} is pending, and a change does not undo it. Nothing was written.`
    const hint = 'Discard that deletion first with discard-draft-changes, then call again.'
    throw new ToolError('pending_changes', text, { href: toDraftHref(href) }, { hint })
  }
  if (draft === null || draft.name !== wanted.name)
    await refuseTakenName(pce, kind, String(wanted.name), signal, draft ?? undefined)
  const { steps, left } = planSteps(kind, draft, wanted, `/orgs/${pce.orgId}/sec_policy/draft/${kind}`)
  await requireReferences(ctx, now, steps, args.version, version)
  const others = steps.length === 0 || draft === null ? [] : await warnOfOthers(ctx, draft)
  const warnings = [...warnOfPlan(draft, steps, what), ...warnOfLeft(kind, left), ...others]
  return { kind, what, version, draft, wanted, steps, left, warnings }
}

/**
 * Finds the object by href, or by its exact name in the version or in the draft, since it may have been deleted or
 * renamed in between.
 */
async function identify(
  { href, name, kind: asked, version }: ObjectArguments,
  draft: PolicyLookups,
  past: PolicyLookups,
  orgId: string,
): Promise<{ kind: RestorableKind; href: string }> {
  if (href !== undefined && name !== undefined)
    throw new ToolError('conflicting_identifiers', 'Give href or name, not both.', { arguments: ['href', 'name'] })
  if (href !== undefined) {
    const parsed = parseHref(href.trim())
    const kind = RESTORABLE_KINDS.find((one) => one === parsed?.kind)
    if (kind !== undefined && parsed?.org === orgId && parsed.id !== undefined && (asked ?? kind) === kind)
      return { kind, href: toDraftHref(href.trim()) }
    const text = `"${href}" is not the href of ${asked === undefined ? 'a rule set, IP list or service' : `a ${nounOf(asked)}`} in organisation ${orgId}.`
    throw new ToolError('invalid_href', text, { href })
  }
  if (name === undefined || asked === undefined) {
    const text = 'Say what to put back: give href, or name with kind.'
    throw new ToolError('missing_identifier', text, { arguments: ['href', 'name', 'kind'] })
  }
  const find = async (lookups: PolicyLookups) => {
    try {
      return toDraftHref((await lookups.byName(asked, name)).href)
    } catch (error) {
      if (error instanceof ToolError && error.code === 'not_found') return error
      throw error
    }
  }
  const then = await find(past)
  const now = await find(draft)
  if (typeof then === 'string' && typeof now === 'string' && then !== now) {
    const text = `In version ${version} another ${nounOf(asked)} was named "${name}" than now. Give the href of one.`
    throw new ToolError('ambiguous_name', text, { kind: asked, name, candidates: [{ href: then }, { href: now }] })
  }
  const found = typeof then === 'string' ? then : now
  if (typeof found === 'string') return { kind: asked, href: found }
  throw then as ToolError
}

/** Reads an object with all its rules, in draft form. Returns null if it does not exist in that version. */
async function readObject({ pce, signal }: Context, kind: RestorableKind, href: string): Promise<PceObject | null> {
  try {
    const object = (await pce.get(href, { includeOrg: false, signal })).json<PceObject>()
    if (kind !== 'rule_sets') return inDraftForm(object) as PceObject
    const [complete] = await loadDenyRules(pce, readRuleSets([object as RuleSet]), signal)
    if (complete === undefined || complete.error !== undefined)
      throw new ToolError('invalid_response', `The deny rules of ${href} could not be read. Nothing was written.`, {
        href,
      })
    return inDraftForm(complete.ruleSet) as PceObject
  } catch (error) {
    if (error instanceof PceApiError && error.isGone) return null
    throw error
  }
}

/** Checks that everything the writes refer to exists in the draft and stays there. */
async function requireReferences(
  { pce, signal }: Context,
  lookups: PolicyLookups,
  steps: readonly Step[],
  version: number,
  versionName: string,
): Promise<void> {
  const gone: { href: string; name?: string; why: string }[] = []
  for (const href of referencesIn(steps)) {
    const why = await whyUnusable(pce, lookups, href, signal)
    if (why === undefined) continue
    const name = await nameThen(pce, toVersionHref(href, version), signal)
    gone.push({ href, ...(name !== undefined && { name }), why })
  }
  if (gone.length === 0) return
  const list = gone
    .map(({ href, name, why }) => `${name === undefined ? '' : `${quote(name)} `}(${href}) ${why}`)
    .join(', ')
  const hint = 'Create what is missing again and write the rules by hand, or discard its pending deletion.'
  throw new ToolError(
    'not_found',
    `What ${versionName} had refers to ${list}. Nothing was written.`,
    { reason: 'deleted_reference', references: gone },
    { hint },
  )
}

async function whyUnusable(
  pce: PceClient,
  lookups: PolicyLookups,
  href: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const DELETED = 'which was deleted since'
  const kind = parseHref(href)?.kind ?? ''
  if (kind === 'labels') return lookups.labels.get(href) === undefined ? DELETED : undefined
  try {
    if (isNamedKind(kind)) return explainPending(kind, await lookups.byHref(kind, href)) && 'whose deletion is pending'
    await pce.get(href, { includeOrg: false, signal })
    return undefined
  } catch (error) {
    const isMissing =
      error instanceof ToolError ? error.code === 'not_found' : error instanceof PceApiError && error.isGone
    if (isMissing) return DELETED
    throw error
  }
}

/** Returns the name that an object had in a version; undefined if it cannot be read, because it only helps. */
async function nameThen(pce: PceClient, href: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { name, key, value } = (await pce.get(href, { includeOrg: false, signal })).json<Record<string, unknown>>()
    if (typeof key === 'string' && typeof value === 'string') return `${key}=${value}`
    return typeof name === 'string' ? name : undefined
  } catch (error) {
    if (!(error instanceof PceApiError)) throw error
    return undefined
  }
}

function warnOfPlan(draft: PceObject | null, steps: readonly Step[], what: string): string[] {
  const rules = steps.filter(({ method, of }) => method === 'POST' && of !== undefined).length
  return [
    ...(draft === null
      ? [
          `${what.charAt(0).toUpperCase()}${what.slice(1)} was deleted since: it is created again with a new href, and what named the old one does not name it.`,
        ]
      : []),
    ...(rules > 0 && draft !== null ? [`Deleted since: ${countOf(rules, 'rule')}, created again with new hrefs.`] : []),
  ]
}

const MOST_NAMED = 5

/** Names what differs from the version and is not put back. */
function warnOfLeft(kind: RestorableKind, left: readonly LeftField[]): string[] {
  const say = (fields: readonly LeftField[], end: string) => {
    if (fields.length === 0) return []
    const names = fields.slice(0, MOST_NAMED).map(({ field, rule }) => {
      const name = field === 'ip_tables_rules' ? 'iptables rules' : field
      return rule === undefined ? name : `${name} of the rule ${rule}`
    })
    const more = fields.length > MOST_NAMED ? [`${fields.length - MOST_NAMED} more`] : []
    return [`Not put back by this tool: ${[...names, ...more].join(', ')}, which ${end}.`]
  }
  return [
    ...say(
      left.filter(({ isMissing }) => !isMissing),
      'differ from the version and stay as they are',
    ),
    ...say(
      left.filter(({ isMissing, rule }) => isMissing && rule === undefined),
      `are missing from the new ${nounOf(kind)}`,
    ),
    ...say(
      left.filter(({ isMissing, rule }) => isMissing && rule !== undefined),
      'are missing from the rule that is created again',
    ),
  ]
}

/** Describes the change that the writes make to the draft; what they leave is no part of it. */
export async function describeObjectPlan(
  ctx: Context,
  { kind, draft, wanted, left }: ObjectPlan,
): Promise<JudgedChange> {
  const change = {
    href: wanted.href,
    type: kind,
    update_type: draft === null ? ('create' as const) : ('update' as const),
    name: String(wanted.name),
  }
  const stays = left.flatMap(({ field, rule }) => (rule === undefined ? [[field, draft?.[field] ?? null]] : []))
  const written = { ...wanted, ...(Object.fromEntries(stays) as object) }
  const [judged] = await describeAgainst(ctx, [{ change, versions: { draft: written, active: draft } }])
  return judged as JudgedChange
}

/** The result of putting an object back. */
export interface RestoredObject {
  href: string
  /** The new hrefs of rules that had been deleted, by the hrefs that the version had. */
  newHrefs: ReadonlyMap<string, string>
  /** True if it was read back and is all that the version had; undefined if it could not be read. */
  verified?: boolean
  warnings: string[]
}

/**
 * Performs the writes in order, and reads the object back.
 * @throws the error of the first write that fails, with `partial`, `written`, `uncertain` and `not_written`.
 */
export function restoreObject(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'inOrder'>,
  args: ObjectArguments,
  approvedPlan: ObjectPlan,
): Promise<RestoredObject & { plan: ObjectPlan }> {
  const { pce } = ctx
  return ctx.inOrder(orderOf(approvedPlan.kind, String(approvedPlan.wanted.name)), async () => {
    // Another call may have written meanwhile, so the differences are looked for again.
    const plan = await planObject(ctx, args)
    let href = plan.wanted.href
    const newHrefs = new Map<string, string>()
    const written: { method: string; href: string }[] = []
    for (const [at, { method, path, body, of }] of plan.steps.entries()) {
      const target = path.startsWith('/orgs/') ? path : `${href}${path}`
      try {
        if (method === 'DELETE') await pce.delete(target, { includeOrg: false })
        else if (method === 'PUT') await pce.put(target, { includeOrg: false, json: body })
        else {
          const created = (await pce.post(target, { includeOrg: false, json: body })).json<PceObject>()
          if (of === undefined) href = toDraftHref(created.href)
          else newHrefs.set(of, toDraftHref(created.href))
          written.push({ method, href: toDraftHref(created.href) })
          continue
        }
        written.push({ method, href: target })
      } catch (error) {
        throw explainHalf(error, written, plan.steps.slice(at))
      }
    }
    const left = await readLeft(ctx, plan, href, newHrefs)
    return { plan, href, newHrefs, ...left }
  })
}

function explainHalf(error: unknown, written: { method: string; href: string }[], rest: readonly Step[]): unknown {
  const [failed, ...later] = rest.map(({ method, path, of }) => ({ method, path, ...(of !== undefined && { of }) }))
  const isOpen = mayHaveHappened(error)
  if (written.length === 0 && !isOpen) return error
  const details: ErrorDetails = {
    partial: true,
    written,
    ...(isOpen ? { uncertain: [failed] } : {}),
    not_written: isOpen ? later : [failed, ...later],
  }
  return withDetails(
    error,
    details,
    'Part of it is in the draft, as `written` says; the same call writes what is left.',
  )
}

async function readLeft(ctx: Context, plan: ObjectPlan, href: string, renamed: ReadonlyMap<string, string>) {
  try {
    const stored = await readObject(ctx, plan.kind, href)
    const wanted = { ...plan.wanted, href }
    const { steps, left } =
      stored === null ? { steps: [null], left: [] } : planSteps(plan.kind, stored, wanted, '', renamed)
    const parts = steps.length
    const known = new Set(plan.left.map(keyOf))
    const warnings = warnOfLeft(
      plan.kind,
      left.filter((one) => !known.has(keyOf(one))),
    )
    if (parts > 0)
      warnings.unshift(
        `Read back, ${countOf(parts, 'part')} of it ${parts === 1 ? 'differs' : 'differ'} from ${plan.version}: compare before provisioning.`,
      )
    return { verified: parts === 0 && left.length === 0, warnings }
  } catch (error) {
    return { warnings: [`It was written, but could not be read back: ${reasonOf(error)}`] }
  }
}

const keyOf = ({ field, rule }: LeftField) => `${field} ${rule ?? ''}`
