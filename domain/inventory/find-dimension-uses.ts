import { PceError } from '../../pce-client/index.js'
import type { LabelDimension } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ToolContext } from '../call.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { filterInSteps, workInTurns } from '../text/pace-work.js'
import { readPolicyUsers } from './find-uses.js'
import { loadLabels } from './labels.js'

/** The uses of a label dimension, as sentences, and sentences about the uses that could not be read. */
export interface DimensionUses {
  uses: string[]
  unread: string[]
}

/** Maximum number of objects named for each kind of use. */
const MOST_NAMED = 10

/**
 * Finds the labels, label groups and rules that use the key of a label dimension, in the draft and the active policy.
 * The PCE's own record of uses counts as well, because the PCE may see more than this account does.
 */
export async function findDimensionUses(
  { pce, signal, now }: Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>,
  { key, usage }: LabelDimension,
): Promise<DimensionUses> {
  const uses: string[] = []
  const unread: string[] = []
  const labels = (await loadLabels(pce, { signal, now }, 'fresh')).values(key)
  if (labels.length > 0) uses.push(tell(countOf(labels.length, 'label'), labels))
  else if (usage?.labels === true) uses.push('labels')
  const groups = new Set<string>()
  const rules = new Set<string>()
  for (const version of ['draft', 'active'] as const) {
    try {
      const users = await readPolicyUsers(pce, version, signal)
      for (const group of users.labelGroups) if (group.key === key) groups.add(nameOf(group))
      const using = await workInTurns(
        filterInSteps([...users.ruleSets, ...users.boundaries], (one) => namesDimension(one, key)),
        signal,
      )
      for (const one of using) rules.add(one.name)
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
      unread.push(`Whether label groups and rules of the ${version} policy use it could not be read: ${error.message}`)
    }
  }
  if (groups.size > 0) uses.push(tell(countOf(groups.size, 'label group'), [...groups]))
  else if (usage?.label_groups === true) uses.push('label groups')
  if (rules.size > 0) uses.push(tell(`rules in ${countOf(rules.size, 'place')}`, [...rules]))
  return { uses, unread }
}

const nameOf = ({ name }: PceObject) => (typeof name === 'string' ? name : '')

function tell(many: string, names: readonly string[]): string {
  const named = names.slice(0, MOST_NAMED).map(quote).join(', ')
  return `${many} (${named}${names.length > MOST_NAMED ? ' …' : ''})`
}

/** Returns true if a value contains `label_dimension` with this key at any depth. */
function namesDimension(value: unknown, key: string): boolean {
  if (Array.isArray(value)) return value.some((item) => namesDimension(item, key))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([field, inner]) =>
    field === 'label_dimension' ? inner === key : namesDimension(inner, key),
  )
}
