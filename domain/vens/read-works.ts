import { PceApiError } from '../../pce-client/index.js'
import type { Ven } from '../../schemas/pce/ven.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { scanEvery } from '../inventory/fetch-every.js'
import { readWork, workloadOf, type Work } from './join-workload.js'

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>

/** Maximum number of VENs whose workloads are read one by one. If there are more, the list of workloads is read. */
export const FEW_VENS = 4

/** The facts about VENs that the PCE's workloads contain. */
export interface Works {
  /** Returns the facts in the workload of a VEN; undefined if the workload is not known. */
  of(ven: Ven): Work | undefined
  /** Returns the workloads that belong to none of the given VENs. */
  without(vens: ReadonlySet<string>): Work[]
  /** Sentences that say why workloads are missing; empty if all were read. */
  warnings: string[]
}

/**
 * Reads the facts about VENs that workloads contain. If the PCE refuses the request, the result contains a warning, and
 * no error is thrown.
 *
 * @param labels the labels by which the VENs were selected; they also narrow the list of workloads
 * @param vens the VENs whose workloads are read; if absent, all workloads with a VEN are kept
 */
export async function readWorks(ctx: Context, labels: string[][] | undefined, vens?: readonly Ven[]): Promise<Works> {
  const found = collect(vens)
  if (vens?.length === 0) return found.works
  const hrefs = vens?.flatMap((ven) => workloadOf(ven) ?? [])
  try {
    if (vens !== undefined && hrefs !== undefined && vens.length <= FEW_VENS && hrefs.length === vens.length) {
      for (const href of hrefs) await readOne(ctx, href, found.add)
      return found.works
    }
    const query = { api: ctx.pce.workloads, params: { managed: true, labels }, signal: ctx.signal }
    const { isWhole } = await scanEvery(query, {
      onBegin: found.reset,
      onItems: (items: Workload[]) => items.forEach(found.add),
    })
    if (!isWhole) found.works.warnings.push('The PCE did not give the whole list of workloads.')
  } catch (error) {
    if (!(error instanceof PceApiError)) throw error
    found.works.warnings.push(
      `The workloads could not be read, so what the list of VENs does not say is not known: ${error.message}`,
    )
  }
  return found.works
}

async function readOne({ pce, signal }: Context, href: string, add: (workload: Workload) => void): Promise<void> {
  try {
    add(await pce.workloads.getByReference(href, { signal }))
  } catch (error) {
    // A workload that no longer exists is left out.
    if (!(error instanceof PceApiError) || !error.isGone) throw error
  }
}

/**
 * Creates an index of workloads by their own href and by the href of their VEN. If `vens` is given, the index contains
 * only the workloads of these VENs.
 */
function collect(vens: readonly Ven[] | undefined) {
  const wanted = vens && new Set(vens.flatMap((ven) => [ven.href, workloadOf(ven) ?? ven.href]))
  const byHref = new Map<string, Work>()
  const byVen = new Map<string, Work>()
  const labels = new Map<string, LabelRef>()
  /** Returns the same object for labels with the same href, so that the labels of many workloads take little memory. */
  const shared = (label: LabelRef): LabelRef => {
    const known = labels.get(label.href) ?? label
    labels.set(label.href, known)
    return known
  }
  const add = (workload: Workload): void => {
    const read = readWork(workload)
    if (wanted !== undefined && !wanted.has(read.href) && !wanted.has(read.ven ?? '')) return
    const work = { ...read, labels: read.labels?.map(shared) ?? null }
    byHref.set(work.href, work)
    if (work.ven !== null && !byVen.has(work.ven)) byVen.set(work.ven, work)
  }
  const reset = (): void => [byHref, byVen].forEach((index) => index.clear())
  const works: Works = {
    of: (ven) => byHref.get(workloadOf(ven) ?? '') ?? byVen.get(ven.href),
    without: (known) => [...byVen].flatMap(([href, work]) => (known.has(href) ? [] : [work])),
    warnings: [],
  }
  return { works, add, reset }
}
