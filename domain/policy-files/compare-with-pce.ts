import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { loadPolicy } from '../history/load-policy.js'
import { reasonOf } from '../inventory/pce-errors.js'
import { type Applied, applyFiles } from './apply-files.js'
import { type FilesDifference, type ObjectDifference, compareFiles } from './compare-files.js'
import { type ExportedPolicy, exportPolicy } from './export-policy.js'
import { type Effect, judgeFiles } from './judge-files.js'
import { listRequests } from './list-requests.js'
import { FILE_KINDS, keyOf } from './name-book.js'
import { type FilesPlan, planFiles } from './plan-writes.js'
import { type Fault, type PolicyFile, bookOf, readFiles } from './read-files.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'beforeWriting' | 'inOrder' | 'progress'>
export type ComparedVersion = 'draft' | 'active'

/** Judges requests by the guardrails of the operator: `refusal` is the error of the first one that forbids them. */
export type JudgeRequests = (
  pce: PceClient,
  requests: readonly PlannedRequest[],
  signal: AbortSignal,
) => Promise<{ refusal: ToolError | null }>

/** Converts a version of the policy to documents. */
export const exportVersion = async (ctx: Context, version: ComparedVersion): Promise<ExportedPolicy> =>
  exportPolicy(ctx, await loadPolicy(ctx.pce, version, ctx.signal))

export interface Compared extends FilesDifference {
  faults: readonly Fault[]
  /** What each difference would do to permitted traffic. */
  effects: ReadonlyMap<ObjectDifference, Effect>
  /**
   * The error of the guardrail that forbids applying the files to the draft. Null if no guardrail forbids it, or if
   * this was not judged.
   */
  refusal: ToolError | null
}

/**
 * Compares files with a version of the policy. If the files have faults, no effects are determined.
 *
 * @param onlyFiles true to leave out the objects without a file.
 * @param judge judges what applying the files would send, if they are compared with the draft.
 */
export async function compareWithPce(
  ctx: Context,
  files: readonly PolicyFile[],
  { against, onlyFiles }: { against: ComparedVersion; onlyFiles: boolean },
  judge: JudgeRequests | null = null,
): Promise<Compared> {
  const draft = await loadPolicy(ctx.pce, 'draft', ctx.signal)
  const policy = against === 'draft' ? draft : await loadPolicy(ctx.pce, against, ctx.signal)
  const read = await readFiles(ctx, files, [draft, policy])
  const book = against === 'draft' ? read.book : await bookOf(ctx, policy)
  const all = compareFiles(read, policy, book)
  const differences = onlyFiles ? all.differences.filter(({ object }) => object !== null) : all.differences
  const effects = read.faults.length > 0 ? new Map() : await judgeFiles(ctx, { differences }, policy, [])
  const compared = { ...all, differences, effects, faults: read.faults }
  if (judge === null || against !== 'draft' || read.faults.length > 0) return { ...compared, refusal: null }
  const ground = { difference: all, draft, book: read.book, leaving: await findLeaving(ctx), prune: false }
  const { refusal } = await judge(ctx.pce, listRequests(await planFiles(ctx, ground)), ctx.signal)
  return { ...compared, refusal }
}

/**
 * The differences that remain between the draft and the files after the files were applied, or a sentence that says why
 * the draft could not be read back.
 */
export type LookedBack = readonly ObjectDifference[] | string

export interface AppliedFiles extends Pick<FilesPlan, 'kept' | 'warnings'> {
  /** Everything that prevents the files from being applied. If the list is not empty, nothing was written. */
  faults: readonly Fault[]
  /** The differences that were written or, in a dry run, would be written. */
  planned: readonly ObjectDifference[]
  effects: ReadonlyMap<ObjectDifference, Effect>
  /** In a dry run, the error of a guardrail that forbids the writes; null if none does. */
  refusal: ToolError | null
  /** Number of objects that already are as the files describe them. */
  same: number
  left: LookedBack
}

/**
 * Changes the draft to what the files describe, and reads it back. Everything is checked before the first write.
 *
 * @param applied filled while requests are sent; see `applyFiles`.
 * @param judge judges the requests before the first one is sent; null if there are no guardrails.
 * @throws the refusal of `judge`, and the errors of `applyFiles` and of the PCE client.
 */
export async function applyToDraft(
  ctx: Context,
  files: readonly PolicyFile[],
  { dryRun, prune }: { dryRun: boolean; prune: boolean },
  applied: Applied,
  judge: JudgeRequests | null = null,
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
  const common = { faults, planned, kept, warnings, same: difference.same, left: [], refusal: null }
  if (faults.length > 0) return { ...common, effects: new Map() }
  const removed = planned.filter(({ change }) => change === 'delete')
  const effects = await judgeFiles(reading, difference, draft, removed)
  const { refusal } = judge === null ? { refusal: null } : await judge(ctx.pce, listRequests(plan), reading.signal)
  if (dryRun) return { ...common, effects, refusal }
  if (refusal !== null) throw refusal
  if (planned.length === 0) return { ...common, effects }
  await applyFiles(ctx, plan, read.book, applied, (done, of) => ctx.progress({ progress: done, total: of }))
  return { ...common, effects, left: await lookBack(ctx, files) }
}

/** Reads the draft back. It never throws, because everything has been written by then. */
async function lookBack(ctx: Context, files: readonly PolicyFile[]): Promise<LookedBack> {
  try {
    const draft = await loadPolicy(ctx.pce, 'draft', ctx.signal)
    const read = await readFiles(ctx, files, [draft])
    return compareFiles(read, draft, read.book).differences.filter(({ object }) => object !== null)
  } catch (error) {
    return `Everything was written, but it could not be read back: ${reasonOf(error)}`
  }
}

/** Finds the objects that are pending deletion. Their names stay in use until the deletion is provisioned (P4). */
async function findLeaving({ pce, signal }: Pick<Context, 'pce' | 'signal'>): Promise<ReadonlySet<string>> {
  const pending = await pce.getPendingPolicyChanges({ signal })
  return new Set(
    pending.flatMap(({ type, name, update_type: update }) => {
      const kind = FILE_KINDS.find((one) => one === type)
      return update === 'delete' && kind !== undefined && name != null ? [keyOf(kind, name)] : []
    }),
  )
}
