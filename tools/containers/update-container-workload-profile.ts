import { Type, type Static } from '@sinclair/typebox'
import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { StringEnum } from '../../schemas/common.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import type { Label } from '../../schemas/pce/label.js'
import { ENFORCEMENT_MODES, isMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { EffectOut, UpdateOutput } from '../../schemas/update-output.js'
import { WorkloadLabelsInput } from '../../schemas/workload-shapes.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { judgeModeChange } from '../../domain/readiness/judge-mode-change.js'
import { withLabels } from '../../domain/traffic/applications.js'
import type { FlowEnd } from '../../domain/traffic/flow-ends.js'
import { hasLabels } from '../../domain/traffic/read-both-ways.js'
import { adviseOn, loadLabels, resolveLabels } from '../../domain/inventory/labels.js'
import { parseHref } from '../../domain/inventory/parse-href.js'
import { quote } from '../../domain/text/escape-text.js'
import { showModeChange } from '../answers/readiness/show-mode-change.js'
import { ProfileOut, showProfiles } from '../answers/show-profile.js'

const output = Type.Object({
  ...UpdateOutput,
  href: Type.Optional(Type.String()),
  effect: EffectOut,
  profile: Type.Optional(
    Type.Composite([Type.Omit(ProfileOut, ['href', 'name']), Type.Partial(Type.Pick(ProfileOut, ['name']))], {
      description: 'A profile',
    }),
  ),
})

export default defineTool({
  name: 'update-container-workload-profile',
  summary: "Change how a namespace's pods are managed, at once. A new mode can cut traffic.",
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run that sets a mode is heavy, because it reads the traffic that the mode would cut.
  isHeavy: ({ dry_run: dryRun, enforcement_mode: mode, managed }) =>
    dryRun === true && (mode !== undefined || managed === true),
  input: Type.Object(
    {
      profile_href: Type.String({ description: 'Its href; see get-container-workload-profiles', listed: '' }),
      managed: Type.Optional(Type.Boolean({ description: 'Manage its pods', listed: '' })),
      enforcement_mode: Type.Optional(StringEnum(ENFORCEMENT_MODES, { description: 'Mode of its pods', listed: '' })),
      assign_labels: WorkloadLabelsInput('Replaces; one per key; [] clears'),
      ...CompleteInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: {
    profile_href: '/orgs/1/container_clusters/ID/container_workload_profiles/ID',
    enforcement_mode: 'visibility_only',
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { profile_href: href, managed, enforcement_mode: mode, assign_labels: asked, dry_run: dryRun } = args
    const { pce, signal } = ctx
    requireFields({ managed, mode, asked }, ['managed', 'enforcement_mode', 'assign_labels'])
    const current = await findProfile(pce, href.trim(), signal)
    const labels = asked === undefined ? undefined : await resolveLabels(pce, asked, ctx, unresolved)
    if (labels !== undefined) requireOneLabelPerKey(labels, 'assign_labels')
    const plan = {
      what: `the profile ${quote(current.namespace ?? current.name ?? current.href)}`,
      current,
      body: {
        managed,
        enforcement_mode: mode,
        assign_labels: labels && [...new Set(labels.map((label) => label.href))].map((label) => ({ href: label })),
      },
      read: (changed: string) => pce.containerWorkloadProfiles.getByReference(changed),
      warnings: labels === undefined ? [] : warnOfRestrictions(current),
    }
    const { previous, ...answer } = await updateObject(ctx, plan, dryRun)
    const warnings = [...(answer.warnings ?? [])]
    // `assign_labels` is the older form of `labels` (P24), so both change together.
    const planned = dryRun === true && labels !== undefined ? { labels: labels.map(assignment) } : {}
    const [profile, was] = await showProfiles([{ ...answer.stored, ...planned }, current], ctx).catch(
      (error: unknown) => {
        if (!answer.updated_fields?.length) throw error
        // The profile is already written, so an error here would wrongly suggest that the write failed.
        warnings.push('It was changed; the profile is not shown because the labels it names could not be read.')
        return []
      },
    )
    const judged =
      dryRun === true && ctx.isBindingOnly !== true
        ? await judgeProfile(ctx, current, { managed, mode, complete: args.complete })
        : null
    warnings.unshift(...(judged?.warnings ?? []))
    return {
      ...withoutStored(answer),
      href: answer.href,
      ...(warnings.length > 0 && { warnings }),
      ...(previous && { previous: { ...previous, ...(was && 'assign_labels' in previous && labelsOf(was)) } }),
      ...(profile && { profile: withoutIds(profile) }),
      ...(judged && { effect: judged.effect }),
    }
  },
})

/**
 * Returns a profile without its href, which the answer shows elsewhere, and without its name if that is null, because
 * the namespace identifies the profile.
 */
const withoutIds = ({ href: _href, name, ...profile }: ProfileOut) => ({ ...profile, ...(name !== null && { name }) })

const labelsOf = ({ assign_labels: assigned, labels }: ProfileOut) => ({
  assign_labels: assigned,
  ...(labels && { labels }),
})

const assignment = ({ href, key, value }: Label) => ({ key, assignment: { href, key, value } })

/**
 * Determines the observed traffic that would be cut if the profile's pods got a new enforcement mode or became managed;
 * returns null if the call changes neither.
 */
async function judgeProfile(
  ctx: ToolContext<true>,
  current: ContainerWorkloadProfile,
  asked: { managed: boolean | undefined; mode: EnforcementMode | undefined; complete: boolean | undefined },
) {
  const { managed, mode, complete } = asked
  const present = isMode(current.enforcement_mode) ? current.enforcement_mode : null
  const to = mode ?? present
  const from = current.managed === true ? present : null
  if (to === from && (to !== null || current.managed === true)) return null
  if ((managed ?? current.managed) !== true) return null
  if (to === null) return { effect: undefined, warnings: [MODE_UNTOLD] }
  const index = await loadLabels(ctx.pce, ctx)
  const given = (current.labels ?? []).flatMap((entry) => ('assignment' in entry ? (entry.assignment ?? []) : []))
  const labels = [...new Set([...given, ...(current.assign_labels ?? [])].map(({ href }) => href))].flatMap(
    (href) => index.get(href) ?? [],
  )
  const change = { from, to }
  if (labels.length === 0) return showModeChange(change, UNLABELLED)
  const ends = { filter: withLabels(labels), isOwn: (end: FlowEnd) => hasLabels(end, labels) }
  const named = labels.map(({ key, value }) => quote(`${key}=${value}`)).join(' and ')
  const scope = `The traffic read is that of everything with ${named}, as the profile labels its pods.`
  const asKnown = { ...change, ...(current.managed === true && from === null && { isUntold: true as const }) }
  const traffic = await judgeModeChange({ ...ctx, signal: ctx.beforeWriting }, ends, asKnown, complete)
  return showModeChange(change, traffic, [scope])
}

const MODE_UNTOLD =
  'The PCE does not tell the mode of the profile, so what would be cut once its pods are managed is not known.'

const UNLABELLED =
  'The profile assigns no labels, so the traffic of its pods cannot be told from other traffic, and what would be cut is not known.'

/**
 * Warns that assign_labels sets exactly one label per key. If the profile offers a choice of labels for a key, this
 * choice is lost.
 */
function warnOfRestrictions({ labels }: ContainerWorkloadProfile): string[] {
  const keys = (labels ?? []).flatMap((entry) => ('restriction' in entry ? [entry.key] : []))
  if (keys.length === 0) return []
  return [`The profile offers a choice of labels for ${keys.map(quote).join(', ')}; assign_labels replaces it.`]
}

/**
 * Reads the profile. Throws invalid_href if the href does not belong to a profile of this organisation, and not_found
 * if the profile does not exist.
 */
async function findProfile(pce: PceClient, href: string, signal: AbortSignal): Promise<ContainerWorkloadProfile> {
  const parsed = parseHref(href)
  const isProfile = parsed?.kind === 'container_workload_profiles' && parsed.parent?.kind === 'container_clusters'
  if (!isProfile || parsed.org !== pce.orgId) {
    const text = `${quote(href)} is not the href of a container workload profile in organisation ${pce.orgId}.`
    throw new ToolError('invalid_href', text, { href })
  }
  try {
    return await pce.containerWorkloadProfiles.getByReference(href, { signal })
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
    throw new ToolError(
      'not_found',
      `No container workload profile has the href ${quote(href)}.`,
      { href },
      { cause: error },
    )
  }
}

function unresolved(missing: readonly { ref: string; valid: string[] | string }[]): ToolError {
  const advice = missing.map((one) => adviseOn(one)).filter((said) => said !== '')
  const refs = missing.map(({ ref }) => quote(ref)).join(', ')
  const text = [`No label matches exactly: ${refs}.`, ...advice, 'Nothing was changed.'].join(' ')
  const valid = Object.fromEntries(missing.map(({ ref, valid }) => [ref, valid]))
  return new ToolError('label_not_found', text, { unresolved: missing.map(({ ref }) => ref), valid_values: valid })
}

/**
 * Throws invalid_argument if two different labels have the same key, because the PCE accepts only one per key (P16).
 */
function requireOneLabelPerKey(labels: readonly Label[], argument: string): void {
  const byKey = new Map<string, Label>()
  for (const label of labels) {
    const same = byKey.get(label.key)
    if (same !== undefined && same.href !== label.href) {
      const text = `One label per key; ${quote(label.key)} was given ${quote(same.value)} and ${quote(label.value)}.`
      throw new ToolError('invalid_argument', text, { argument, key: label.key })
    }
    byKey.set(label.key, label)
  }
}
