import { OBSERVED_DAYS } from '../../../domain/drafts/observe-change.js'
import { assumesOf, type DraftEvidence, type RulesEvidence } from '../../../domain/history/observe-draft.js'
import type { PageEvidence } from '../../../domain/history/observe-for-page.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { coverageNote } from '../../../domain/traffic/read-flows.js'
import type { ShownCall, ShownObject } from '../../../schemas/approvals.js'
import {
  countRules,
  describeRules,
  EVIDENCE,
  EVIDENCE_MEANINGS,
  type Evidence,
  NOT_KNOWN,
  type RuleShown,
  showEvidence,
  showOnPage,
  showRules,
  sumRules,
} from '../show-evidence.js'

const NOT_LOOKED_UP = 'Not looked up for this change.'
/** Number of pairs of each kind that an approval page shows for each rule. */
const PAIRS_OF_RULE = 1
/**
 * Maximum number of rules of a rule set that an approval page shows although the rules themselves do not change. They
 * are affected because the scopes or the state of their rule set change.
 */
const MOST_THROUGH_SET = 30
const THROUGH_SET = 'The rule stays as it is; the scopes of its rule set change, or whether that is enabled.'

/**
 * Adds to the objects of an approval page what observed traffic says about the change of each object, or why that is
 * not known, and describes the traffic that was examined. Returns nothing without evidence (null).
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
    objects: objects.map((object) => ({ ...object, ...evidenceOf(object, found) })),
  }
}

/** Returns warnings about traffic that the changes cut, or may cut. */
export function warnOfEvidence(evidence: PageEvidence | null): string[] {
  if (evidence === null || typeof evidence.found === 'string') return []
  const { read, changes } = evidence.found
  const words = [...changes.values()].map((one) => showEvidence(one, isCut(read)).evidence)
  const told = EVIDENCE.filter((word) => URGENT.has(word)).flatMap((word) => {
    const count = words.filter((one) => one === word).length
    return count === 0 ? [] : [`Of ${countOf(count, 'change')}: ${EVIDENCE_MEANINGS[word]}.`]
  })
  const { none = 0 } =
    sumRules([...changes.values()].flatMap(({ rules }) => (rules ? countRules(rules, isCut(read)) : [])))?.evidence ??
    {}
  return none === 0 ? told : [...told, `Of ${countOf(none, 'changed rule')}: ${EVIDENCE_MEANINGS.none}.`]
}
const URGENT: ReadonlySet<Evidence> = new Set(['depends', 'both', 'undecided', 'not_known'])

/** Returns the assumptions about the PCE on which the evidence depends. */
export function assumedByEvidence(evidence: PageEvidence | null): { assumes?: readonly string[] }[] {
  if (evidence === null || typeof evidence.found === 'string') return []
  return [...evidence.found.changes.values()].map((one) => ({ assumes: assumesOf(one) }))
}

const isCut = (read: DraftEvidence['read']): boolean => read?.truncated ?? false

const ended = (text: string): string => (text.endsWith('.') ? text : `${text}.`)

/** Returns what observed traffic says about the change of an object and, if it is a rule set, about each of its rules. */
function evidenceOf(object: ShownObject, { changes, read }: DraftEvidence): Pick<ShownObject, 'evidence' | 'parts'> {
  const found = object.href === undefined ? undefined : changes.get(toDraftHref(object.href))
  if (found === undefined) return { evidence: { says: NOT_LOOKED_UP } }
  const { says, ...shown } = showEvidence(found, isCut(read))
  if (found.rules === undefined) return { evidence: showOnPage({ says, ...shown }) }
  const { parts, left } = withRules(object.parts ?? [], found.rules, isCut(read))
  const more = left === 0 ? '' : `${countOf(left, 'rule')} of these are not shown here: see review-draft.`
  const said = [says, describeRules(countRules(found.rules, isCut(read))), more].filter(Boolean).join(' ')
  return { evidence: showOnPage({ says: said, ...shown }), ...(parts.length > 0 && { parts }) }
}

/**
 * Adds its evidence to each changed rule, and appends as many as fit of the rules that are affected only by a change of
 * their rule set.
 */
function withRules(parts: readonly ShownObject[], rules: RulesEvidence, isCutShort: boolean) {
  const rows = showRules(rules, isCutShort, PAIRS_OF_RULE)
  const byHref = new Map(rows.map((row) => [row.href, row]))
  const known = new Set(parts.map(({ href }) => href))
  const others = rows.filter(({ href }) => !known.has(href))
  const judged = parts.map((part) => {
    const row = byHref.get(part.href ?? '')
    return row === undefined ? part : { ...part, evidence: showOnPage(row) }
  })
  return {
    parts: [...judged, ...others.slice(0, MOST_THROUGH_SET).map(showRule)],
    left: Math.max(0, others.length - MOST_THROUGH_SET),
  }
}

const showRule = ({ href, rule_type: type, rule, ...row }: RuleShown): ShownObject => ({
  kind: `${type.replaceAll('_', ' ')} rule`,
  name: rule,
  href,
  change: 'update',
  fields: [],
  evidence: showOnPage(row),
  note: THROUGH_SET,
})

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
