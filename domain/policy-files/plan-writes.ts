import type { PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { refuseByRelease } from '../drafts/limits-of-deny.js'
import { warnOfOthers } from '../drafts/warn-of-others.js'
import type { WholePolicy } from '../history/load-policy.js'
import { OWN_FIELDS, type Step, planWrites } from '../history/plan-object.js'
import { capital } from '../text/capital.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { checkEnds, checkObject, lookupsIn, rulesOf, sidesOf } from './check-objects.js'
import { type Kept, choosePruned } from './choose-pruned.js'
import { type FilesDifference, type ObjectDifference, policyAfter, whatOf, withHrefs } from './compare-files.js'
import { readDocument } from './convert-objects.js'
import { type FileKind, type NameBook, keyOf } from './name-book.js'
import type { Fault, FileObject } from './read-files.js'

/** The writes for one object. */
export interface PlannedObject {
  difference: ObjectDifference
  /** The object as messages name it, such as `the IP list "Branch offices"`. */
  what: string
  /**
   * The requests in order. Where their bodies refer to objects that earlier requests create, they have made-up hrefs.
   */
  steps: readonly Step[]
}

/** Everything that applying the files would write, and everything that prevents the writing. */
export interface FilesPlan {
  objects: readonly PlannedObject[]
  faults: readonly Fault[]
  /** The objects that have no file but are kept, each with the reason. */
  kept: readonly Kept[]
  warnings: readonly string[]
}

interface Ground {
  difference: FilesDifference
  draft: WholePolicy
  book: NameBook
  /** The keys (see `keyOf`) of the objects that are pending deletion. */
  leaving: ReadonlySet<string>
  prune: boolean
}

const EXTERNAL = { external_data_set: null, external_data_reference: null }
const FIELDS = {
  ...OWN_FIELDS,
  label_groups: { name: '', key: '', description: '', labels: [], sub_groups: [] },
} as const satisfies Record<FileKind, object>

/**
 * Plans the writes that change the draft to what the files describe. Each is checked as the tools check their own
 * writes, so that nothing is sent that the PCE must refuse.
 */
export async function planFiles(
  { pce, signal, now }: { pce: PceClient; signal: AbortSignal; now: () => number },
  ground: Ground,
): Promise<FilesPlan> {
  const { difference, leaving } = ground
  const written = difference.differences.filter(({ object }) => object !== null)
  const after = policyAfter(difference, ground.draft)
  const lookups = lookupsIn(after, ground.book)
  const faults: Fault[] = []
  const ends: string[] = []
  for (const one of written) {
    const object = one.object as FileObject
    const fault = (why: string, path: (string | number)[] = ['name']) =>
      void faults.push({ place: object.file.placeOf(path), why })
    if (leaving.has(keyOf(one.kind, one.name))) {
      const text = `the deletion of ${whatOf(one)} is pending, which keeps its name taken. Discard or provision it first.`
      fault(text)
    }
    await checkObject(one, after, lookups, fault)
    ends.push(...checkEnds(one, fault, now()))
  }
  const rules = written.flatMap(({ object }) => rulesOf(object as FileObject))
  const warnings = await refuseByRelease(
    pce,
    rules.map(({ rule, type }) => ({ type, ...sidesOf(rule) })),
    signal,
  )
  warnings.push(...ends, ...(await warnOfOwners({ pce, signal }, written)))
  const { removed, kept } = ground.prune ? choosePruned(difference, ground.draft) : { removed: [], kept: [] }
  const base = (kind: FileKind) => `/orgs/${pce.orgId}/sec_policy/draft/${kind}`
  const creations = inNestingOrder(written).map((one) => planObject(one, base(one.kind), ground.book))
  const deletions = inNestingOrder(removed)
    .reverse()
    .map((one): PlannedObject => {
      const path = one.before!.href
      return { difference: one, what: whatOf(one), steps: [{ method: 'DELETE', path, body: null }] }
    })
  return { objects: [...creations, ...deletions], faults, kept, warnings }
}

/** Maximum number of objects for which the authors of pending changes are read. */
const MOST_READ = 50

/** Warns of changes to objects that somebody else also changes: another system, or a person with pending changes. */
async function warnOfOwners(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  written: readonly ObjectDifference[],
): Promise<string[]> {
  const known = written.filter(({ before }) => before !== null)
  const external = known.flatMap((one) => {
    const { external_data_set: set } = one.before as PceObject
    const text = `${capital(whatOf(one))} belongs to the external data set ${quote(String(set))}: what keeps it may overwrite this.`
    return typeof set === 'string' && set !== '' ? [text] : []
  })
  const pending = known.filter(({ before }) => before?.update_type != null)
  const others = await mapBounded(pending.slice(0, MOST_READ), 4, async (one) =>
    (await warnOfOthers({ pce, signal }, one.before as PceObject)).map((text) => `${capital(whatOf(one))}: ${text}`),
  )
  const unread =
    pending.length > MOST_READ
      ? [`Of ${pending.length - MOST_READ} more with pending changes it was not read whose these are.`]
      : []
  return [...external, ...others.flat(), ...unread]
}

function planObject(difference: ObjectDifference, base: string, book: NameBook): PlannedObject {
  const { kind, object, before, ruleHrefs } = difference
  const wanted = withHrefs(object!.wire, before?.href ?? object!.wire.href, ruleHrefs)
  const own = { ...FIELDS[kind], ...EXTERNAL }
  const { steps } = planWrites({ kind, own, base }, readAgain(difference, book), wanted)
  return { difference, what: whatOf(difference), steps }
}

/**
 * Converts a draft object to a document and back, with its own hrefs. Different ways in which a PCE writes the same
 * thing then do not count as differences, and fields that documents do not have are neither compared nor written.
 */
function readAgain({ kind, before, written }: ObjectDifference, book: NameBook): PceObject | null {
  if (before === null || written === null) return null
  let isWhole = true
  const reading = { book, fault: () => void (isWhole = false) }
  const again = readDocument(kind, written.document, before.href, reading)
  if (!isWhole) return before
  return withHrefs(again, before.href, new Map(written.ruleHrefs.map((href, at) => [madeUp(again, at), href])))
}

/** Returns the made-up href of the rule at the given position of a document. */
const madeUp = (ruleSet: PceObject, at: number): string =>
  allRules(ruleSet).find(({ href }) => href.endsWith(`:${at}`))?.href ?? ''

const allRules = (ruleSet: PceObject): PceObject[] => [
  ...((ruleSet.rules ?? []) as PceObject[]),
  ...((ruleSet.deny_rules ?? []) as PceObject[]),
]

/** Sorts objects so that they can be created in this order: a label group comes after the groups that it contains. */
function inNestingOrder(written: readonly ObjectDifference[]): ObjectDifference[] {
  const contentOf = ({ object, before }: ObjectDifference) => (object?.wire ?? before) as PceObject
  const groups = new Map(
    written.flatMap((one) => (one.kind === 'label_groups' ? [[contentOf(one).href, one] as const] : [])),
  )
  const placed = new Set<ObjectDifference>()
  const place = (one: ObjectDifference, path: readonly ObjectDifference[]) => {
    if (placed.has(one) || path.includes(one)) return
    for (const { href } of (contentOf(one).sub_groups ?? []) as { href: string }[]) {
      const inner = groups.get(href)
      if (inner !== undefined) place(inner, [...path, one])
    }
    placed.add(one)
  }
  for (const one of written) place(one, [])
  return [...placed]
}
