import { OBSERVED_DAYS } from '../../../domain/drafts/observe-change.js'
import type { ChangeEvidence, DraftEvidence } from '../../../domain/history/observe-draft.js'
import type { PageEvidence } from '../../../domain/history/observe-for-page.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { coverageNote } from '../../../domain/traffic/read-flows.js'
import type { ShownCall, ShownEvidence, ShownObject } from '../../../schemas/approvals.js'
import { EVIDENCE, EVIDENCE_MEANINGS, type Evidence, showEvidence } from '../show-evidence.js'

const NOT_LOOKED_UP = 'Not looked up for this change.'
const NOT_KNOWN = 'Not known, as said above.'

/**
 * Adds to the objects of an approval page what observed traffic says about the change of each, and says what was looked
 * at. If it is not known, it says why. Without evidence (null), returns nothing.
 */
export function showEvidenceOnPage(
  objects: readonly ShownObject[],
  evidence: PageEvidence | null,
): Pick<ShownCall, 'evidence'> & { objects?: ShownObject[] } {
  if (evidence === null) return {}
  const { found, readAt } = evidence
  if (typeof found === 'string')
    return {
      evidence: { read_at: readAt, says: `What it says of these changes is not known: ${ended(found)}` },
      objects: objects.map((object) => ({ ...object, evidence: { says: NOT_KNOWN } })),
    }
  return {
    evidence: { read_at: readAt, says: describeReading(found, evidence) },
    objects: objects.map((object) => ({ ...object, evidence: evidenceOf(object.href, found) })),
  }
}

/** Returns warnings about traffic that the changes cut, or may cut. */
export function warnOfEvidence(evidence: PageEvidence | null): string[] {
  if (evidence === null || typeof evidence.found === 'string') return []
  const { read, changes } = evidence.found
  const words = [...changes.values()].map((one) => showEvidence(one, isCut(read)).evidence)
  return EVIDENCE.filter((word) => URGENT.has(word)).flatMap((word) => {
    const count = words.filter((one) => one === word).length
    return count === 0 ? [] : [`Of ${countOf(count, 'change')}: ${EVIDENCE_MEANINGS[word]}.`]
  })
}
const URGENT: ReadonlySet<Evidence> = new Set(['depends', 'both', 'undecided', 'not_known'])

/** Returns the assumptions about the PCE on which the evidence depends. */
export function assumedByEvidence(evidence: PageEvidence | null): { assumes?: readonly string[] }[] {
  if (evidence === null || typeof evidence.found === 'string') return []
  return [...evidence.found.changes.values()].map((one) => (one.kind === 'judged' ? { assumes: one.assumes } : {}))
}

const isCut = (read: DraftEvidence['read']): boolean => read?.truncated ?? false

const ended = (text: string): string => (text.endsWith('.') ? text : `${text}.`)

function evidenceOf(href: string | undefined, { changes, read }: DraftEvidence): ShownEvidence {
  const found: ChangeEvidence | undefined = href === undefined ? undefined : changes.get(toDraftHref(href))
  if (found === undefined) return { says: NOT_LOOKED_UP }
  const { says, depends = [], asked_for: asked = [], pairs_total: total } = showEvidence(found, isCut(read))
  const traffic = [...depends, ...asked]
  return {
    says,
    ...(traffic.length > 0 && { traffic }),
    ...(total !== undefined && { traffic_total: total }),
  }
}

function describeReading({ read, modes }: DraftEvidence, { lookedUp, changes }: PageEvidence): string {
  const sentences = [
    read === null
      ? 'None was read, because it can say nothing of these changes.'
      : `${countOf(read.rows, 'row')} of the last ${OBSERVED_DAYS} days ${read.rows === 1 ? 'was' : 'were'} judged by the policies with and without each change.`,
    lookedUp < changes ? `Evidence was looked up for ${lookedUp} of ${changes} changes.` : '',
    ...modes,
    read?.truncated === true ? 'Not all of it was read, so counts are lower bounds.' : '',
    read === null ? '' : coverageNote({ ...read, full: 0, announced: null }),
  ]
  return sentences.filter(Boolean).join(' ')
}
