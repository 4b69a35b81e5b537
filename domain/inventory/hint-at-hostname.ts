import { PceError, type ObjectApi, type RequestOptions } from '../../pce-client/index.js'

/** As many as every release gives at once (P8): how many match, the header of an answer does not say on all of them. */
const MOST_COUNTED = 500

/** A question that nothing answers. */
interface Question<T extends object> {
  api: Pick<ObjectApi<T>, 'getPage'>
  /** Filters as they were sent to the PCE. */
  params: NonNullable<RequestOptions['params']>
  signal: AbortSignal
  /** More was compared here, so that fewer may match than the PCE counts. */
  isNarrowed: boolean
}

/**
 * Where nothing has a name: how many workloads or VENs have it in their host name, which is what consoles show of those without a name.
 * One request; null without a filter by name, beside one by host name, where none has it, and where the PCE does not answer.
 */
export async function hintAtHostname<T extends object>(question: Question<T>): Promise<string | null> {
  const { api, params, signal, isNarrowed } = question
  const { name, ...others } = params
  if (name === undefined || others['hostname'] !== undefined) return null
  try {
    const asked = { ...others, hostname: name, max_results: MOST_COUNTED }
    const { items } = await api.getPage('draft', null, { params: asked, signal })
    if (items.length === 0) return null
    const isAll = items.length < MOST_COUNTED
    const found = isNarrowed
      ? isAll
        ? `At most ${items.length}`
        : 'Some may'
      : `${items.length}${isAll ? '' : ' or more'}`
    const match = items.length === 1 ? 'matches' : 'match'
    return `${found} ${match} by hostname, which consoles show where a name is unset.`
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}
