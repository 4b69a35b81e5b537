import type { ToolContext } from '../call.js'
import { loadPolicy } from '../history/load-policy.js'
import { reasonOf } from '../inventory/pce-errors.js'
import { type Applied, applyFiles } from './apply-files.js'
import { type FilesDifference, type ObjectDifference, compareFiles } from './compare-files.js'
import { type ExportedPolicy, exportPolicy } from './export-policy.js'
import { type Effect, judgeFiles } from './judge-files.js'
import { FILE_KINDS, keyOf } from './name-book.js'
import { type FilesPlan, planFiles } from './plan-writes.js'
import { type Fault, type PolicyFile, bookOf, readFiles } from './read-files.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'beforeWriting' | 'inOrder' | 'progress'>
export type ComparedVersion = 'draft' | 'active'

/** Converts a version of the policy to documents. */
export const exportVersion = async (ctx: Context, version: ComparedVersion): Promise<ExportedPolicy> =>
  exportPolicy(ctx, await loadPolicy(ctx.pce, version, ctx.signal))

export interface Compared extends FilesDifference {
  faults: readonly Fault[]
  /** What each difference would do to permitted traffic. */
  effects: ReadonlyMap<ObjectDifference, Effect>
}

/**
 * Compares files with a version of the policy. If there are faults, there are no effects.
 * @param onlyFiles true to leave out the objects without a file.
 */
export async function compareWithPce(
  ctx: Context,
  files: readonly PolicyFile[],
  { against, onlyFiles }: { against: ComparedVersion; onlyFiles: boolean },
): Promise<Compared> {
  const draft = await loadPolicy(ctx.pce, 'draft', ctx.signal)
  const policy = against === 'draft' ? draft : await loadPolicy(ctx.pce, against, ctx.signal)
  const read = await readFiles(ctx, files, [draft, policy])
  const book = against === 'draft' ? read.book : await bookOf(ctx, policy)
  const all = compareFiles(read, policy, book)
  const differences = onlyFiles ? all.differences.filter(({ object }) => object !== null) : all.differences
  const effects = read.faults.length > 0 ? new Map() : await judgeFiles(ctx, { differences }, policy, [])
  return { ...all, differences, effects, faults: read.faults }
}

/** What differs between the draft and the files after they were applied; a sentence if it could not be read back. */
export type LookedBack = readonly ObjectDifference[] | string

export interface AppliedFiles extends Pick<FilesPlan, 'kept' | 'warnings'> {
  /** Everything that keeps the files from being applied. Nothing was written if there is anything. */
  faults: readonly Fault[]
  /** The differences that were written, or would be. */
  planned: readonly ObjectDifference[]
  effects: ReadonlyMap<ObjectDifference, Effect>
  /** The number of objects that are as the files say. */
  same: number
  left: LookedBack
}

/**
 * Makes the draft what files say, and reads it back. Everything is checked before the first write.
 * @param applied is filled while the requests are sent; see `applyFiles`.
 * @throws the errors of `applyFiles` and of the PCE client.
 */
export async function applyToDraft(
  ctx: Context,
  files: readonly PolicyFile[],
  { dryRun, prune }: { dryRun: boolean; prune: boolean },
  applied: Applied,
): Promise<AppliedFiles> {
  const reading = { ...ctx, signal: ctx.beforeWriting }
  const draft = await loadPolicy(ctx.pce, 'draft', reading.signal)
  const read = await readFiles(reading, files, [draft])
  const difference = compareFiles(read, draft, read.book)
  const leaving = await findLeaving(reading)
  const plan = await planFiles(reading, { difference, draft, book: read.book, leaving, prune })
  const faults = [...read.faults, ...plan.faults]
  const planned = plan.objects.map((one) => one.difference)
  const { kept, warnings } = plan
  const common = { faults, planned, kept, warnings, same: difference.same, left: [] }
  if (faults.length > 0) return { ...common, effects: new Map() }
  const removed = planned.filter(({ change }) => change === 'delete')
  const effects = await judgeFiles(reading, difference, draft, removed)
  if (dryRun || planned.length === 0) return { ...common, effects }
  await applyFiles(ctx, plan, read.book, applied, (done, of) => ctx.progress({ progress: done, total: of }))
  return { ...common, effects, left: await lookBack(ctx, files) }
}

/** Reads the draft back. It never fails, because everything is written. */
async function lookBack(ctx: Context, files: readonly PolicyFile[]): Promise<LookedBack> {
  try {
    const draft = await loadPolicy(ctx.pce, 'draft', ctx.signal)
    const read = await readFiles(ctx, files, [draft])
    return compareFiles(read, draft, read.book).differences.filter(({ object }) => object !== null)
  } catch (error) {
    return `Everything was written, but it could not be read back: ${reasonOf(error)}`
  }
}

/** Finds the objects whose deletion is pending: their names stay taken until it is provisioned (P4). */
async function findLeaving({ pce, signal }: Pick<Context, 'pce' | 'signal'>): Promise<ReadonlySet<string>> {
  const pending = await pce.getPendingPolicyChanges({ signal })
  return new Set(
    pending.flatMap(({ type, name, update_type: update }) => {
      const kind = FILE_KINDS.find((one) => one === type)
      return update === 'delete' && kind !== undefined && name != null ? [keyOf(kind, name)] : []
    }),
  )
}
