import { PceApiError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { type ApplicationReference, resolveApplicationReference } from '../inventory/find-application.js'
import { fetchEvery, pickEvery } from '../inventory/fetch-every.js'
import { type NamedKind, findObject } from '../inventory/find-object.js'
import { isUnresolved, loadLabels, resolveLabel } from '../inventory/labels.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { draftHrefOf } from './load-policy.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/**
 * The types of objects whose history can be requested. Each name that callers use for a type is mapped to the path
 * segment of this type in hrefs.
 */
export const TARGET_KINDS = {
  rule_set: 'rule_sets',
  ip_list: 'ip_lists',
  service: 'services',
  label_group: 'label_groups',
  virtual_service: 'virtual_services',
  virtual_server: 'virtual_servers',
  workload: 'workloads',
  container_cluster: 'container_clusters',
} as const satisfies Record<string, NamedKind>
export type TargetKind = keyof typeof TARGET_KINDS | 'label'

/** The arguments that select a target. Exactly one of href, name (with kind) and application must be given. */
export interface TargetArguments {
  href?: string
  name?: string
  kind?: TargetKind
  application?: ApplicationReference
}

/** The target of a search: the objects whose changes are searched for in events and versions. */
export interface Target {
  /**
   * The target in the words that sentences use, such as `the rule set "Payments"` or `the application payments|prod`.
   */
  what: string
  /**
   * Draft hrefs of the target's objects. Everything inside these objects also belongs to the target. If the target is a
   * deleted object of which only the name is known, its href is added as soon as an event reveals it.
   */
  hrefs: Set<string>
  /** Draft hrefs of single rules that belong to the target. The other rules of their rule sets do not belong to it. */
  rules: ReadonlySet<string>
  /**
   * The type and name of a deleted object; present only if no object has this name any more. `error` is thrown if no
   * event or version mentions the name either.
   */
  gone?: { kind: TargetKind; name: string; error: ToolError }
  /**
   * The labels of the application, if the target is an application. A deleted rule set also belongs to the target if
   * one of its scopes names the application.
   */
  application?: { labels: readonly Label[]; keyOf: (labelHref: string) => string | undefined }
  /** A text for the caller that says which objects the search covers. */
  covers: string
}

/**
 * Determines the target of a search. The href may belong to a deleted object, because its history may still be wanted.
 * Throws missing_identifier, conflicting_identifiers, invalid_href, ambiguous_name, and not_found if the application's
 * labels do not exist.
 */
export async function findTarget(ctx: Context, args: TargetArguments): Promise<Target> {
  const given = (['href', 'name', 'application'] as const).filter((argument) => args[argument] !== undefined)
  if (given.length > 1)
    throw new ToolError('conflicting_identifiers', `Give one of ${given.join(', ')}.`, { arguments: given })
  if (args.href !== undefined) return targetOfHref(ctx, args.href.trim())
  if (args.application !== undefined) return targetOfApplication(ctx, args.application)
  if (args.name === undefined || args.kind === undefined) {
    if (args.name !== undefined) {
      const kinds = [...Object.keys(TARGET_KINDS), 'label'].join(', ')
      const text = `Say of what kind ${quote(args.name)} is: kind is one of ${kinds}.`
      const hint = 'Give kind together with name; names are unique only within a kind.'
      throw new ToolError('missing_identifier', text, { argument: 'kind', arguments: ['kind'] }, { hint })
    }
    const text = 'Say what changed: give href, name with kind, or application.'
    throw new ToolError('missing_identifier', text, { arguments: ['href', 'name', 'kind', 'application'] })
  }
  return targetOfName(ctx, args.kind, args.name)
}

const NONE: ReadonlySet<string> = new Set()
const WHOLE = 'The object and what lies inside it.'
const WITH_VEN = 'The workload and its VEN.'

async function targetOfHref(ctx: Context, given: string): Promise<Target> {
  const { pce } = ctx
  const parsed = parseHref(given)
  if (parsed === null || parsed.org !== pce.orgId || (parsed.id === undefined && parsed.kind !== 'firewall_settings')) {
    const text = `${quote(given)} is not the href of an object in organisation ${pce.orgId}.`
    throw new ToolError('invalid_href', text, { href: given })
  }
  const href = draftHrefOf(given)
  if (parsed.kind === 'workloads')
    return { what: href, hrefs: new Set(await readWorkloadHrefs(ctx, href)), rules: NONE, covers: WITH_VEN }
  if (parsed.parent?.kind !== 'rule_sets') return { what: href, hrefs: new Set([href]), rules: NONE, covers: WHOLE }
  const covers = `The rule; of its rule set ${draftHrefOf(parsed.parent.href)} only the versions in which the rule differs.`
  return { what: `the rule ${href}`, hrefs: new Set(), rules: new Set([href]), covers }
}

/**
 * Returns the hrefs under which events may name a workload: its own href, and the href of its VEN as a VEN and as an
 * agent. Events of a VEN, such as a change of the enforcement mode, may name only the VEN.
 */
const hrefsOf = ({ href, ven, agent }: Pick<Workload, 'href' | 'ven' | 'agent'>): string[] =>
  [href, ven?.href, agent?.href].filter((one) => typeof one === 'string')

/**
 * Returns all hrefs under which events may name a workload. If the workload cannot be read, for example because it was
 * deleted, only its own href is returned.
 */
async function readWorkloadHrefs({ pce, signal }: Context, href: string): Promise<string[]> {
  try {
    return hrefsOf(await pce.workloads.getByReference(href, { signal }))
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status === 401) throw error
    return [href]
  }
}

async function targetOfName(ctx: Context, kind: TargetKind, name: string): Promise<Target> {
  const what = `the ${kind.replaceAll('_', ' ')} ${quote(name)}`
  const gone = (error: ToolError): Target => {
    const covers = 'Nothing has this name now: what had it when it was changed.'
    return { what, hrefs: new Set(), rules: NONE, gone: { kind, name, error }, covers }
  }
  if (kind === 'label') {
    const label = resolveLabel(await loadLabels(ctx.pce, ctx, 'fresh'), name)
    if (!isUnresolved(label)) return { what, hrefs: new Set([label.href]), rules: NONE, covers: WHOLE }
    const text = `No label is exactly ${quote(name)}.`
    return gone(new ToolError('not_found', text, { argument: 'name', value: name, valid: label.valid }))
  }
  try {
    const found = await findObject(ctx.pce, TARGET_KINDS[kind], { name }, ctx.signal)
    if (kind === 'workload') return { what, hrefs: new Set(hrefsOf(found)), rules: NONE, covers: WITH_VEN }
    return { what, hrefs: new Set([toDraftHref(found.href)]), rules: NONE, covers: WHOLE }
  } catch (error) {
    if (!(error instanceof ToolError) || error.code !== 'not_found') throw error
    return gone(error)
  }
}

/**
 * Creates the target for an application: its labels, its workloads, the rule sets whose scope names the application,
 * and the rules in other rule sets that name it. Rules and rule sets are those of the current draft and of the active
 * policy.
 */
async function targetOfApplication(ctx: Context, asked: ApplicationReference): Promise<Target> {
  const { pce, signal } = ctx
  const labels = await resolveApplicationReference(ctx, asked, 'application')
  const index = await loadLabels(pce, ctx)
  const keyOf = (href: string) => index.get(href)?.key
  const params = { labels: JSON.stringify([labels.map(({ href }) => href)]) }
  const workloads = await pickEvery({ api: pce.workloads, params, signal }, hrefsOf)
  const own = new Set<string>()
  const rules = new Set<string>()
  for (const policyVersion of ['draft', 'active'] as const) {
    const { items } = await fetchEvery({ api: pce.ruleSets, policyVersion, params: {}, signal })
    for (const { ruleSet } of await loadDenyRules(pce, items, signal)) {
      if (isOfApplication(ruleSet, labels, keyOf)) own.add(toDraftHref(ruleSet.href))
      else for (const rule of rulesAbout(ruleSet, labels)) rules.add(rule)
    }
  }
  const name = labels.map(({ key, value }) => `${key}=${value}`).join(' and ')
  const sets = countOf(own.size, 'rule set')
  const elsewhere = countOf(rules.size, 'rule')
  return {
    what: `the application ${quote(name)}`,
    hrefs: new Set([...labels.map(({ href }) => href), ...workloads.flat(), ...own]),
    rules,
    application: { labels, keyOf },
    covers: `As they are now: ${countOf(labels.length, 'label')}, ${countOf(workloads.length, 'workload')}, ${sets} of its scope, and ${elsewhere} elsewhere with its app label at an end. Rule sets deleted since are found in versions alone.`,
  }
}

/**
 * Returns true if a scope names the application: its app label, together with its env label or without any env label.
 * If the application has no app label, its env label is enough. An excluded label does not count as named.
 */
export function isOfApplication(
  { scopes }: Pick<RuleSet, 'scopes'>,
  labels: readonly Label[],
  keyOf: (labelHref: string) => string | undefined,
): boolean {
  const main = mainOf(labels)
  const env = labels.find(({ key }) => key === 'env')?.href
  return scopes.some((scope) => {
    const named = scope.filter(({ exclusion }) => exclusion !== true).flatMap(({ label }) => label?.href ?? [])
    const isOtherEnv = env !== undefined && !named.includes(env) && named.some((href) => keyOf(href) === 'env')
    return named.includes(main) && !isOtherEnv
  })
}

const mainOf = (labels: readonly Label[]): string => (labels.find(({ key }) => key === 'app') ?? labels[0])?.href ?? ''

function rulesAbout(ruleSet: RuleSet, labels: readonly Label[]): string[] {
  const main = mainOf(labels)
  return [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].flatMap(({ href, consumers, providers }) =>
    [...consumers, ...providers].some(({ label }) => label?.href === main) ? [toDraftHref(href)] : [],
  )
}
