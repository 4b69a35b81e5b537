import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { refuseTakenName } from '../drafts/create-named.js'
import { refuseOverwriting } from '../drafts/change-object.js'
import { inTurns, orderOf } from '../drafts/order-of.js'
import { explainPending } from '../drafts/pending-deletion.js'
import { refuseOtherKind } from '../drafts/plan-service.js'
import { warnOfOthers } from '../drafts/warn-of-others.js'
import { apiOf, createPolicyLookups, isNamedKind, nounOf, type PolicyLookups } from '../inventory/find-object.js'
import { loadLabels } from '../inventory/labels.js'
import { parseHref, toDraftHref, toVersionHref } from '../inventory/parse-href.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { readRuleSets } from '../inventory/require-rule-shape.js'
import type { PolicyChange } from '../policy/apply-change.js'
import { isSaid } from '../policy/default-fields.js'
import { describeAgainst } from '../policy/describe-changes.js'
import { diffFields } from '../policy/diff-fields.js'
import { capital } from '../text/capital.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { inDraftForm } from './load-policy.js'
import {
  RESTORABLE_KINDS,
  alignWith,
  planSteps,
  referencesIn,
  type LeftField,
  type RestorableKind,
  type Step,
} from './plan-object.js'
import { chooseVersion, loadVersions } from './read-versions.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** The arguments that name the object to restore and the version from which it is restored. */
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
  /** The object in the draft; null if it was deleted after the version was provisioned. */
  draft: PceObject | null
  wanted: PceObject
  steps: Step[]
  /** The differing fields that no write restores. The warnings name them. */
  left: LeftField[]
  warnings: string[]
}

/**
 * Plans the writes that restore one object from a version. It checks names, pending deletions and every reference, so
 * that the server sends no write that the PCE must refuse.
 * @throws {ToolError} missing_identifier, invalid_href, not_found for a version or object, ambiguous_name,
 * pending_changes if the deletion of the object is pending, already_exists if another object uses its name, and
 * not_found with `references` if the object refers to objects that have been deleted since.
 */
export async function planObject(ctx: Context, args: ObjectArguments): Promise<ObjectPlan> {
  const { pce, signal } = ctx
  const { name: version } = chooseVersion(await loadVersions(pce, signal), args.version)
  const labels = await loadLabels(pce, ctx, 'fresh')
  const now = createPolicyLookups(pce, labels, 'draft', signal)
  const past = createPolicyLookups(pce, labels, args.version, signal)
  const { kind, href } = await identify(ctx, args, now, past)
  const stored = await readObject(ctx, kind, toVersionHref(href, args.version))
  const what = `the ${nounOf(kind)} ${quote(typeof stored?.name === 'string' ? stored.name : href)}`
  if (stored === null)
    throw new ToolError('not_found', `${version} has no ${nounOf(kind)} ${href}. Nothing was written.`, {
      version: args.version,
      href,
    })
  const name = String(stored.name)
  const own = await readObject(ctx, kind, toDraftHref(href))
  const draft = own ?? (await readNamesake(ctx, now, kind, name, args.version))
  if (own?.update_type === 'delete') {
    const text = `The deletion of ${what} is pending, and a change does not undo it. Nothing was written.`
    const hint = 'Discard that deletion first with discard-draft-changes, then call again.'
    throw new ToolError('pending_changes', text, { href: toDraftHref(href) }, { hint })
  }
  if (draft === null || draft.name !== name || draft.update_type === 'delete')
    await refuseTakenName(pce, kind, name, signal, own ?? undefined)
  if (own === null && draft !== null && kind === 'services') {
    const list = SERVICE_LISTS.find((one) => isSaid(stored[one]))
    if (list !== undefined) refuseOtherKind(draft as Service, list)
  }
  const wanted = draft === null ? stored : alignWith(draft, stored)
  const { steps, left } = planSteps(kind, draft, wanted, `/orgs/${pce.orgId}/sec_policy/draft/${kind}`)
  await requireReferences(ctx, now, steps, args.version, version)
  const others = steps.length === 0 || draft === null ? [] : await warnOfOthers(ctx, draft)
  const warnings = [...warnOfPlan(own, draft, steps, what), ...warnOfLeft(kind, left), ...others]
  return { kind, what, version, draft, wanted, steps, left, warnings }
}

/**
 * Reads the draft object that was created in place of a deleted object and has its name. It may have been created by an
 * earlier call that failed half-way. Returns null if there is no such object.
 */
async function readNamesake(
  ctx: Context,
  lookups: PolicyLookups,
  kind: RestorableKind,
  name: string,
  version: number,
): Promise<PceObject | null> {
  const href = await hrefOf(lookups, kind, name)
  if (typeof href !== 'string') return null
  // If the version contains the href of the draft object, this object existed already when the version was provisioned,
  // so it was not created in place of the deleted one.
  const isOther = (await readObject(ctx, kind, toVersionHref(href, version))) !== null
  return isOther ? null : readObject(ctx, kind, href)
}

/**
 * Returns the draft href of the object with exactly this name. If there is none, returns the error not_found instead of
 * throwing it.
 */
async function hrefOf(lookups: PolicyLookups, kind: RestorableKind, name: string): Promise<string | ToolError> {
  try {
    return toDraftHref((await lookups.byName(kind, name)).href)
  } catch (error) {
    if (error instanceof ToolError && error.code === 'not_found') return error
    throw error
  }
}

/**
 * Finds the href of the object in the version, by its href, or by its exact name in the version or in the draft. The
 * object may have been deleted, renamed or created again since that version.
 */
async function identify(
  ctx: Context,
  { href, name, kind: asked, version }: ObjectArguments,
  draft: PolicyLookups,
  past: PolicyLookups,
): Promise<{ kind: RestorableKind; href: string }> {
  const { orgId } = ctx.pce
  if (href !== undefined && name !== undefined)
    throw new ToolError('conflicting_identifiers', 'Give href or name, not both.', { arguments: ['href', 'name'] })
  if (href !== undefined) {
    const parsed = parseHref(href.trim())
    const kind = RESTORABLE_KINDS.find((one) => one === parsed?.kind)
    if (kind !== undefined && parsed?.org === orgId && parsed.id !== undefined && (asked ?? kind) === kind)
      return { kind, href: await hrefBefore(ctx, kind, toDraftHref(href.trim()), version, past) }
    const text = `${quote(href)} is not the href of ${asked === undefined ? 'a rule set, IP list or service' : `a ${nounOf(asked)}`} in organisation ${orgId}.`
    throw new ToolError('invalid_href', text, { href })
  }
  if (name === undefined || asked === undefined) {
    const text = 'Say what to put back: give href, or name with kind.'
    throw new ToolError('missing_identifier', text, { arguments: ['href', 'name', 'kind'] })
  }
  const then = await hrefOf(past, asked, name)
  const now = await hrefOf(draft, asked, name)
  if (typeof then === 'string' && typeof now === 'string' && then !== now) {
    // The object in the version has been deleted since, and the object that now has its name was created in its place.
    if ((await readObject(ctx, asked, then)) === null) return { kind: asked, href: then }
    const text = `In version ${version} another ${nounOf(asked)} was named ${quote(name)} than now. Give the href of one.`
    throw new ToolError('ambiguous_name', text, { kind: asked, name, candidates: [{ href: then }, { href: now }] })
  }
  const found = typeof then === 'string' ? then : now
  if (typeof found === 'string') return { kind: asked, href: found }
  throw then as ToolError
}

/**
 * Returns the href that an object had in a version. This href differs from the present one if the object was deleted
 * after the version was provisioned and created again with the same name.
 */
async function hrefBefore(
  ctx: Context,
  kind: RestorableKind,
  href: string,
  version: number,
  past: PolicyLookups,
): Promise<string> {
  if ((await readObject(ctx, kind, toVersionHref(href, version))) !== null) return href
  const name = (await readObject(ctx, kind, href))?.name
  const then = typeof name === 'string' ? await hrefOf(past, kind, name) : undefined
  return typeof then === 'string' && (await readObject(ctx, kind, then)) === null ? then : href
}

/**
 * Reads an object, in the version that its href names, with all its rules, and converts its hrefs to draft hrefs.
 * Returns null if the object does not exist in that version.
 */
export async function readObject(
  { pce, signal }: Pick<Context, 'pce' | 'signal'>,
  kind: string,
  href: string,
): Promise<PceObject | null> {
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

const IN_FLIGHT = 4
const MOST_REFERENCES = 200

/** Checks that all objects to which the writes refer exist in the draft and are not marked for deletion. */
async function requireReferences(
  { pce, signal }: Context,
  lookups: PolicyLookups,
  steps: readonly Step[],
  version: number,
  versionName: string,
): Promise<void> {
  const hrefs = referencesIn(steps)
  const asked = hrefs.filter((href) => parseHref(href)?.kind !== 'labels').length
  if (asked > MOST_REFERENCES) {
    const text = `What would be written refers to ${asked} objects beside labels; at most ${MOST_REFERENCES} can be looked up. Nothing was written.`
    const hint = 'Put single rules back by hand, as compare-policy-versions shows them.'
    throw new ToolError('invalid_argument', text, { references: asked, most: MOST_REFERENCES }, { hint })
  }
  const looked = await mapBounded(hrefs, IN_FLIGHT, async (href) => {
    const why = await whyUnusable(pce, lookups, href, signal)
    if (why === undefined) return []
    const name = await nameThen(pce, toVersionHref(href, version), signal)
    return [{ href, ...(name !== undefined && { name }), why }]
  })
  const gone = looked.flat()
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

/**
 * Returns the name that an object had in a version. Returns undefined if it cannot be read, because the name is not
 * essential.
 */
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

function warnOfPlan(own: PceObject | null, draft: PceObject | null, steps: readonly Step[], what: string): string[] {
  const rules = steps.filter(({ method, of }) => method === 'POST' && of !== undefined).length
  const gone = `${capital(what)} was deleted since: `
  if (draft === null)
    return [`${gone}it is created again with a new href, and what named the old one does not name it.`]
  return [
    ...(own === null ? [`${gone}what has its name now (${draft.href}) is taken for it.`] : []),
    ...(rules > 0 ? [`Deleted since: ${countOf(rules, 'rule')}, created again with new hrefs.`] : []),
  ]
}

const MOST_NAMED = 5

/** Warns of fields that differ from the version and are not restored. */
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

/**
 * Describes the change that the writes of a plan make to the draft. Fields that are not restored do not appear in it.
 */
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

/**
 * Returns the change that the writes of a plan make to the draft policy. Returns null for a new IP list or service,
 * because no rule can refer to it yet.
 */
export function changeOf({ kind, draft, wanted, steps }: ObjectPlan): PolicyChange | null {
  if (kind === 'ip_lists') return draft === null ? null : { is: 'ip_list', list: { ...draft, ...wanted } as IpList }
  if (kind === 'services') return draft === null ? null : { is: 'service', service: { ...draft, ...wanted } as Service }
  if (draft === null) return { is: 'new_rule_set', ruleSet: wanted as RuleSet }
  const now = partsOf(draft)
  const written = new Set(steps.map(({ path }) => path))
  // Rules that are not written keep the content that they have in the draft, so that they do not count as changed.
  const kept = <R extends PceObject>(rules: readonly R[] | null | undefined) =>
    (rules ?? []).map((rule) => (written.has(rule.href) ? rule : ((now.get(rule.href) as R | undefined) ?? rule)))
  const { enabled, scopes, rules, deny_rules: denyRules } = wanted as RuleSet
  const fields = { enabled, scopes, rules: kept(rules), deny_rules: kept(denyRules) }
  return { is: 'rule_set', href: draft.href, fields: fields }
}

/** The result of restoring an object. */
export interface RestoredObject {
  href: string
  /** The hrefs of newly created rules, by the hrefs that these rules had in the version before they were deleted. */
  newHrefs: ReadonlyMap<string, string>
  /** True if the object was read back and equals the object in the version; undefined if it could not be read. */
  verified?: boolean
  warnings: string[]
}

/**
 * Sends the write requests of the plan in order, and reads the object back.
 * @throws {ToolError} `already_exists {reason: changed_meanwhile}` if the draft has changed since the plan was made.
 *   Nothing was written then.
 * @throws the error of the first write that fails, with `partial`, `written`, `uncertain` and `not_written`.
 */
export function restoreObject(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'inOrder'>,
  plan: ObjectPlan,
): Promise<RestoredObject> {
  const { pce } = ctx
  return inTurns(ctx.inOrder, ordersOf(plan), async () => {
    ctx.signal.throwIfAborted()
    await refuseChanged(ctx, plan)
    let href = plan.wanted.href
    const newHrefs = new Map<string, string>()
    const written: { method: string; href: string }[] = []
    for (const [at, { method, path, body, of }] of plan.steps.entries()) {
      const target = path.startsWith('/orgs/') ? path : `${href}${path}`
      try {
        if (method === 'DELETE') await pce.delete(target, { includeOrg: false })
        else if (method === 'PUT') await pce.put(target, { includeOrg: false, json: body })
        else {
          const created = await create(pce, plan.kind, target, body ?? {})
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
    return { href, newHrefs, ...left }
  })
}

/** Creates an object or, if the path is inside a rule set, a rule. */
function create(pce: PceClient, kind: RestorableKind, path: string, body: object): Promise<PceObject> {
  const [, ruleSet, rules] = /^(.*)\/(sec_rules|deny_rules)$/.exec(path) ?? []
  if (ruleSet === undefined) return apiOf(pce, kind).create(body)
  return rules === 'deny_rules' ? pce.denyRules.create(body, ruleSet) : pce.rules.create(body, ruleSet)
}

/**
 * Returns the names of the queues (see `inOrder`) in which the writes of a plan must wait: one for each name that the
 * object has, in the draft or in the version, and one for each existing rule that is changed or deleted.
 */
const ordersOf = ({ kind, draft, wanted, steps }: ObjectPlan) => [
  ...[wanted, draft ?? wanted].map(({ name }) => orderOf(kind, String(name))),
  ...steps.flatMap(({ method, path, of }) => (method !== 'POST' && of !== undefined ? [path] : [])),
]

/**
 * Throws if the draft has changed since the plan was made, so that the writes would no longer restore the version, or
 * would overwrite somebody's edits.
 */
async function refuseChanged(ctx: Context, plan: ObjectPlan): Promise<void> {
  const { kind, what, draft, wanted, steps } = plan
  if (draft === null) return refuseTakenName(ctx.pce, kind, String(wanted.name), ctx.signal)
  const now = await readObject(ctx, kind, draft.href)
  const changed = () => {
    const text = `Somebody else changed ${what} during this call. Nothing was written.`
    const details = { reason: 'changed_meanwhile', href: draft.href }
    const hint = 'Look at what it is now, and repeat the call.'
    return new ToolError('already_exists', text, details, { hint })
  }
  if (now === null || now.update_type === 'delete') throw changed()
  if (draft.name !== wanted.name) await refuseTakenName(ctx.pce, kind, String(wanted.name), ctx.signal, now)
  const before = partsOf(draft)
  const after = partsOf(now)
  for (const { method, path, body } of steps) {
    const [was, is] = [before.get(path), after.get(path)]
    if (was === undefined) continue
    if (is === undefined || (method === 'DELETE' && diffFields(is, was).length > 0)) throw changed()
    if (body !== null) refuseOverwriting(what, { before: was, now: is, body })
  }
  if (JSON.stringify(planSteps(kind, now, wanted, '').steps) !== JSON.stringify(steps)) throw changed()
}

/** Returns a map that contains an object and its rules by href. */
function partsOf(object: PceObject): Map<string, PceObject> {
  const { rules, deny_rules: denyRules } = object as RuleSet
  return new Map([object, ...(rules ?? []), ...(denyRules ?? [])].map((part) => [part.href, part]))
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
    'Part of it is in the draft, as `written` says. When the cause is mended, the same call writes what is left.',
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
