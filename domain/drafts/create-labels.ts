import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import type { Written } from './write-with-rollback.js'
import {
  forgetLabels,
  isLabelReference,
  isUnresolved,
  loadLabels,
  resolveLabel,
  describeReference,
  showLabel,
  splitLabel,
  type LabelIndex,
  type LabelOutput,
  type LabelReference,
  type ReadContext,
} from '../inventory/labels.js'
import { hidesCharacters, quote } from '../text/escape-text.js'
import { warnOfSentences } from './warn-of-sentences.js'

/** Creates the error for a label that already exists. */
export function labelExists(label: Label): ToolError {
  const details: ErrorDetails = { href: label.href, existing_label: showLabel(label) }
  return new ToolError('already_exists', `The label ${quote(`${label.key}=${label.value}`)} already exists.`, details, {
    hint: 'Use the existing label.',
  })
}

/** Warns of existing labels, other than `own`, that differ from the new one only in case or spaces. */
export function warnOfLookAlikes(index: LabelIndex, key: string, value: string, own?: string): string[] {
  const variants = index.lookAlikes(key, value).filter(({ href }) => href !== own)
  if (variants.length === 0) return []
  const list = variants.map(({ key, value, href }) => `${quote(`${key}=${value}`)} (${href})`).join(', ')
  return [
    `The label ${quote(`${key}=${value}`)} differs only in case or spaces from ${list}; policy treats them as different labels.`,
  ]
}

/**
 * Creates one label. If somebody else created the label after it was looked up, throws already_exists with its href.
 */
export async function createLabel(pce: PceClient, key: string, value: string, context: ReadContext): Promise<Label> {
  const { label, created } = await ensureLabel(pce, key, value, context)
  if (!created) throw labelExists(label)
  return label
}

/**
 * Creates a label, or returns the existing one if another call was faster, because concurrent calls often need the same
 * new label. `created` says whether this call created it. The label cache is dropped in any case. If it cannot be
 * determined whether the label exists, the PCE's refusal is thrown unchanged.
 */
async function ensureLabel(
  pce: PceClient,
  key: string,
  value: string,
  context: ReadContext,
): Promise<{ label: Label; created: boolean }> {
  context.signal.throwIfAborted()
  try {
    return { label: await pce.labels.create({ key, value }), created: true }
  } catch (error) {
    // If the PCE accepted the request but its answer cannot be read, the label exists and can be found by key and value
    // (D72).
    const isAccepted = error instanceof PceError && error.isAccepted
    if (isAccepted || (error instanceof PceApiError && error.status === 406)) {
      const index = await loadLabels(pce, context, 'fresh').catch(() => undefined)
      const existing = index?.find(key, value)
      if (existing !== undefined) return { label: existing, created: isAccepted }
    }
    throw error
  } finally {
    forgetLabels(pce)
  }
}

/** The labels that a workload will have, at most one per key. Each either exists or is planned for creation. */
interface LabelPlan {
  entries: ({ existing: Label } | { missing: { key: string; value: string } })[]
  warnings: string[]
}

/**
 * Looks up all labels of a workload before anything is written. A new label is planned for each key and value that do
 * not exist yet. Throws label_not_found for an href without a label, and invalid_argument for anything that is not a
 * label and for two values with the same key.
 */
export function planWorkloadLabels(index: LabelIndex, references: readonly LabelReference[]): LabelPlan {
  const byKey = new Map<string, { value: string; entry: LabelPlan['entries'][number] }>()
  const warnings: string[] = []
  for (const reference of references) {
    const found = resolveLabel(index, reference)
    const entry: LabelPlan['entries'][number] = isUnresolved(found)
      ? { missing: toNewLabel(reference) }
      : { existing: found }
    const { key, value } = 'missing' in entry ? entry.missing : entry.existing
    const same = byKey.get(key)
    if (same !== undefined && same.value !== value) {
      throw new ToolError(
        'invalid_argument',
        `A workload has one label per key; ${quote(key)} was given ${quote(same.value)} and ${quote(value)}.`,
        {
          argument: 'labels',
          key,
        },
      )
    }
    if ('missing' in entry && same === undefined)
      warnings.push(...warnOfSentences({ key, label: value }), ...warnOfLookAlikes(index, key, value))
    byKey.set(key, { value, entry })
  }
  return { entries: [...byKey.values()].map(({ entry }) => entry), warnings }
}

function toNewLabel(reference: LabelReference): { key: string; value: string } {
  const shown = describeReference(reference)
  const pair = typeof reference === 'string' && !reference.startsWith('/') ? splitLabel(reference) : null
  const isPair = typeof reference === 'object' && isLabelReference(reference) && reference.href === undefined
  const { key, value } = pair ?? (isPair ? reference : {})
  if (key !== undefined && value !== undefined && isName(key) && !key.includes('=') && isName(value))
    return { key, value }
  if (shown.startsWith('/'))
    throw new ToolError('label_not_found', `No label has the href ${quote(shown)}.`, { label: shown })
  throw new ToolError(
    'invalid_argument',
    `${quote(shown)} is not a label. Give {key, value}, "key=value" or an href.`,
    {
      argument: 'labels',
    },
  )
}

function isName(text: string): boolean {
  return text !== '' && text === text.trim() && !hidesCharacters(text) && text.length <= 255
}

/**
 * Returns the labels in the order of the plan. A label that does not exist yet has a placeholder instead of an href.
 */
export function plannedLabels(plan: LabelPlan): LabelOutput[] {
  return plan.entries.map((entry) => {
    if ('existing' in entry) return entry.existing
    const { key, value } = entry.missing
    return { href: `{href of ${key}=${value}}`, key, value }
  })
}

/** Returns the requests that create the missing labels of a plan. */
export function labelRequests(orgId: string, plan: LabelPlan): PlannedRequest[] {
  const missing = plan.entries.flatMap((entry) => ('missing' in entry ? [entry.missing] : []))
  return missing.map((body) => ({ method: 'POST', path: `/orgs/${orgId}/labels`, body }))
}

/**
 * Creates the missing labels of a plan and returns all its labels in order. Labels that this call creates, rather than
 * a concurrent one, are added to `written` and `created` at once, so that a later error can report them.
 */
export async function writePlannedLabels(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  plan: LabelPlan,
  written: Written,
  created: LabelOutput[],
): Promise<Label[]> {
  const labels: Label[] = []
  for (const entry of plan.entries) {
    if ('existing' in entry) {
      labels.push(entry.existing)
      continue
    }
    const { label, created: isOurs } = await ensureLabel(ctx.pce, entry.missing.key, entry.missing.value, ctx)
    labels.push(label)
    if (!isOurs) continue
    written.hrefs.push(label.href)
    created.push(showLabel(label))
  }
  return labels
}
