import { makeSafe } from '../../domain/text/escape-text.js'
import {
  CONTENT_LEFT_OUT,
  MOST_SHOWN_BYTES,
  type ShownCall,
  type ShownObject,
  type ShownReference,
} from '../../schemas/approvals.js'
import type { Outlook } from '../../schemas/confirmations.js'

/** Prepares what the approval page of a call shows: makes it safe to display and limits its size. */
export function fitShown({ summary, details, page }: Extract<Outlook, { boundTo: string }>): ShownCall {
  const whole = page ?? { warnings: [], objects: [], objects_total: 0, facts: details }
  return fitPage(makeSafe({ summary, ...whole }))
}

const LEFT_OUT =
  'What changes in it is left out here, because the whole would be too large: look at it in the PCE before you decide.'

/**
 * Limits the size of what a page shows. The first objects are kept complete, the following ones without their content,
 * and the remaining ones are only counted. The remaining space is for the objects to which hrefs refer, which are
 * treated in the same way.
 */
function fitPage(shown: ShownCall): ShownCall {
  if (jsonBytes(shown) <= MOST_SHOWN_BYTES) return shown
  const { facts, referred = [], ...rest } = shown
  const keptFacts = facts !== undefined && jsonBytes(facts) <= MOST_SHOWN_BYTES / 4 ? { facts } : {}
  const around = { ...rest, ...keptFacts, warnings: shown.warnings.slice(0, MOST_WARNINGS), truncated: true as const }
  const kept = { ...around, ...clipLists(around), objects: [] as ShownObject[] }
  let room = MOST_SHOWN_BYTES - jsonBytes(kept)
  // Space is reserved for at least the names of the objects that follow.
  const bare = shown.objects.map(({ fields: _fields, parts: _parts, warnings: _warnings, evidence, ...object }) => ({
    ...object,
    ...(evidence && { evidence: { says: evidence.says } }),
    fields: [],
    note: LEFT_OUT,
  }))
  let reserved = bare.reduce((sum, object) => sum + jsonBytes(object) + 1, 0)
  for (const [at, object] of shown.objects.entries()) {
    const short = bare[at]!
    reserved -= jsonBytes(short) + 1
    const size = jsonBytes(object) + 1
    const chosen = size + Math.max(0, reserved) <= room ? object : short
    const needed = jsonBytes(chosen) + 1
    if (needed > room) break
    kept.objects.push(chosen)
    room -= needed
  }
  return { ...kept, ...fitReferred(referred, room - FRAME_BYTES) }
}

/** Number of bytes reserved for the field names `referred` and `referred_left_out`. */
const FRAME_BYTES = 64

function fitReferred(
  referred: readonly ShownReference[],
  bytes: number,
): Pick<ShownCall, 'referred' | 'referred_left_out'> {
  let room = bytes
  const kept = referred.flatMap((one) => {
    const { content, ...bare } = one
    const short = content === undefined ? bare : { ...bare, note: CONTENT_LEFT_OUT }
    const chosen = [one, short].find((form) => jsonBytes(form) + 1 <= room)
    room -= chosen === undefined ? 0 : jsonBytes(chosen) + 1
    return chosen === undefined ? [] : [chosen]
  })
  const left = referred.length - kept.length
  return { ...(kept.length > 0 && { referred: kept }), ...(left > 0 && { referred_left_out: left }) }
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

const MOST_WARNINGS = 50
const MOST_LISTED = 100

const clipLists = ({ dependencies, not_included: rest }: Omit<ShownCall, 'objects'>) => ({
  ...(dependencies && { dependencies: dependencies.slice(0, MOST_LISTED) }),
  ...(rest && { not_included: { ...rest, objects: rest.objects.slice(0, MOST_LISTED) } }),
})
