import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { hidesCharacters } from '../text/escape-text.js'
import { warnOfCaseVariants } from './create-label.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import {
  isLabelReference,
  isUnresolved,
  resolveLabel,
  showLabel,
  splitLabel,
  type LabelReference,
} from '../inventory/resolve-labels.js'

/** The labels a workload will bear: one per key, each there already or to be created. */
export interface LabelPlan {
  entries: ({ existing: Label } | { missing: { key: string; value: string } })[]
  warnings: string[]
}

/**
 * Resolves the labels a workload is to bear, all before anything is written. A key and value that no label has is planned as a new
 * label. Throws label_not_found for an href without label, invalid_argument for what is no label or for two values of one key.
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
        `A workload has one label per key; ${key} was given "${same.value}" and "${value}".`,
        {
          argument: 'labels',
          key,
        },
      )
    }
    const warning = 'missing' in entry && same === undefined ? warnOfCaseVariants(index, key, value) : undefined
    if (warning !== undefined) warnings.push(warning)
    byKey.set(key, { value, entry })
  }
  return { entries: [...byKey.values()].map(({ entry }) => entry), warnings }
}

function toNewLabel(reference: LabelReference): { key: string; value: string } {
  const shown = showLabel(reference)
  const pair = typeof reference === 'string' && !reference.startsWith('/') ? splitLabel(reference) : null
  const isPair = typeof reference === 'object' && isLabelReference(reference) && reference.href === undefined
  const { key, value } = pair ?? (isPair ? reference : {})
  if (key !== undefined && value !== undefined && isName(key) && !key.includes('=') && isName(value))
    return { key, value }
  if (shown.startsWith('/')) throw new ToolError('label_not_found', `No label has the href ${shown}.`, { label: shown })
  throw new ToolError('invalid_argument', `"${shown}" is no label. Give {key, value}, "key=value" or an href.`, {
    argument: 'labels',
  })
}

function isName(text: string): boolean {
  return text !== '' && text === text.trim() && !hidesCharacters(text) && text.length <= 255
}

/** The labels' hrefs in the plan's order, with a placeholder for each label that is yet to be created. */
export function plannedHrefs(plan: LabelPlan): string[] {
  const placeholder = ({ key, value }: { key: string; value: string }) => `{href of ${key}=${value}}`
  return plan.entries.map((entry) => ('existing' in entry ? entry.existing.href : placeholder(entry.missing)))
}

/** The requests that create what a plan lacks. */
export function labelRequests(orgId: string, plan: LabelPlan): PlannedRequest[] {
  const missing = plan.entries.flatMap((entry) => ('missing' in entry ? [entry.missing] : []))
  return missing.map((body) => ({ method: 'POST', path: `/orgs/${orgId}/labels`, body }))
}
