import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { findByHref, findObject } from './find-object.js'
import { resolveLabels, unresolvedFilter, type LabelReference, type ReadContext } from './labels.js'
import { parseHref } from './parse-href.js'
import { quote, trimBlanks } from '../text/escape-text.js'

const GROUP = 'labelgroup:'

/**
 * Maximum number of label combinations in one request. The combinations are part of the URL, and servers limit URLs to
 * 8 kB.
 */
const MOST_ALTERNATIVES = 100

/** The conditions on the labels of a workload. */
interface LabelConditions {
  /**
   * The `labels` parameter for the PCE: a workload must have all labels of at least one inner list (P8). It is
   * undefined if there is nothing to filter by.
   */
  param: string[][] | undefined
  /**
   * The test for the conditions that did not fit into the request, so that this server must apply them itself;
   * undefined if all conditions fitted.
   */
  ownFilter: ((workload: Workload) => boolean) | undefined
}

/**
 * Looks up label references, all of which a workload must match: labels in any form, and label groups
 * (`labelgroup:NAME` or an href). A workload matches a group if it has one of the group's labels. Groups are read in
 * their draft version, including nested groups.
 *
 * @throws {ToolError} as `resolveLabels` and `findObject` do, and invalid_argument if the references contradict each
 * other, because an empty answer would be misread as "there are no such workloads".
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
    if (members.size === 0) throw impossible(`The label group ${quote(name)} has no labels, so no workload is in it.`)
    if (same !== undefined && !members.has(same.href))
      throw impossible(
        `No workload has ${quote(`${same.key}=${same.value}`)} and a label of the label group ${quote(name)}.`,
      )
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

/**
 * Rejects two labels with the same key and different values. No workload can have both, so the answer would be empty
 * and be misread as "there are no such workloads".
 */
function refuseTwoValues(labels: readonly Label[]): void {
  const [first, second] = labels.filter((label) =>
    labels.some((other) => other.key === label.key && other.value !== label.value),
  )
  if (first === undefined || second === undefined) return
  const text = `No workload has both ${quote(`${first.key}=${first.value}`)} and ${quote(`${second.key}=${second.value}`)}; labels are ANDed.`
  throw new ToolError('invalid_argument', text, { argument: 'labels' }, { hint: 'Ask once per value.' })
}

const impossible = (text: string) => new ToolError('invalid_argument', text, { argument: 'labels' })

/** Returns the name or href of a label group, or null if the reference is something else. */
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
