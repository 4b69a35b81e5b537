import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { findByHref, findObject } from './find-object.js'
import { resolveLabels, unresolvedFilter, type LabelReference, type ReadContext } from './labels.js'
import { parseHref } from './parse-href.js'
import { trimBlanks } from '../text/escape-text.js'

const GROUP = 'labelgroup:'

/** Alternatives that a request names: its query goes into the address, and servers take 8 kB of that. */
const MOST_ALTERNATIVES = 100

/** The labels a workload has to have. */
interface LabelConditions {
  /** As the PCE takes it: labels of an inner list are ANDed, lists are alternatives (P8). Undefined: nothing to ask for. */
  param: string[][] | undefined
  /** What is left to compare here, because it would not fit into a request. */
  ownFilter: ((workload: Workload) => boolean) | undefined
}

/**
 * Label references that a workload must all match: labels in any form, and label groups (`labelgroup:NAME` or an href), of which it has
 * one label. Groups are those of the draft, with the groups inside them. Throws what `resolveLabels` and `findObject` throw, and
 * invalid_argument for references that no workload can match together: read as "there are none", that would mislead.
 */
export async function resolveLabelConditions(
  pce: PceClient,
  references: readonly LabelReference[],
  context: ReadContext,
): Promise<LabelConditions> {
  const isGroup = (reference: LabelReference) => groupOf(reference) !== null
  const labels = await resolveLabels(
    pce,
    references.filter((reference) => !isGroup(reference)),
    context,
    unresolvedFilter,
  )
  refuseTwoValues(labels)
  const hrefs = labels.map(({ href }) => href)
  const groups: Awaited<ReturnType<typeof readMembers>>[] = []
  for (const reference of references.filter(isGroup)) groups.push(await readMembers(pce, reference, context))
  for (const { name, key, members } of groups) {
    const same = labels.find((label) => label.key === key)
    if (members.size === 0) throw impossible(`The label group ${name} has no labels, so no workload is in it.`)
    if (same !== undefined && !members.has(same.href))
      throw impossible(`No workload has ${same.key}=${same.value} and a label of the label group ${name}.`)
  }
  const count = groups.reduce((product, { members }) => product * members.size, 1)
  if (count > MOST_ALTERNATIVES) {
    return {
      param: hrefs.length > 0 ? [hrefs] : undefined,
      ownFilter: ({ labels: own }) => groups.every(({ members }) => (own ?? []).some(({ href }) => members.has(href))),
    }
  }
  const lists = groups.reduce<string[][]>(
    (found, { members }) => found.flatMap((list) => [...members].map((member) => [...new Set([...list, member])])),
    [hrefs],
  )
  return { param: lists.some((list) => list.length > 0) ? lists : undefined, ownFilter: undefined }
}

/** A workload has one label per key, so two values of one key match nothing, which would read as "there are none". */
function refuseTwoValues(labels: readonly Label[]): void {
  const [first, second] = labels.filter((label) =>
    labels.some((other) => other.key === label.key && other.value !== label.value),
  )
  if (first === undefined || second === undefined) return
  const text = `No workload has both ${first.key}=${first.value} and ${second.key}=${second.value}; labels are ANDed.`
  throw new ToolError('invalid_argument', text, { argument: 'labels' }, { hint: 'Ask once per value.' })
}

const impossible = (text: string) => new ToolError('invalid_argument', text, { argument: 'labels' })

/** The name or href of a label group; null for a reference to something else. */
function groupOf(reference: LabelReference): { name?: string; href?: string } | null {
  const text = trimBlanks((typeof reference === 'string' ? reference : reference.href) ?? '')
  if (typeof reference === 'string' && text.startsWith(GROUP)) return { name: trimBlanks(text.slice(GROUP.length)) }
  return parseHref(text)?.kind === 'label_groups' ? { href: text } : null
}

async function readMembers(pce: PceClient, reference: LabelReference, { signal }: ReadContext) {
  const group = await findObject(pce, 'label_groups', groupOf(reference) ?? {}, signal)
  const members = new Set<string>()
  const seen = new Set([group.href])
  const add = async (one: LabelGroup): Promise<void> => {
    for (const { href } of one.labels ?? []) members.add(href)
    for (const { href } of one.sub_groups ?? []) {
      if (seen.has(href)) continue
      seen.add(href)
      await add(await findByHref(pce, 'label_groups', href, 'draft', signal))
    }
  }
  await add(group)
  return { name: group.name, key: group.key, members }
}
