import { isDeepStrictEqual } from 'node:util'
import type { TriedClient } from './clients.js'

/** What came of one step: a value, or the message of what was thrown. */
type Outcome<T> = { value: T; thrown?: undefined } | { value?: undefined; thrown: string }

interface Answer {
  isError: boolean
  text: string
}

/** What a client saw of one server (test/clients/programs/session.mjs). */
export interface Session {
  connect?: Outcome<never>
  tools: Outcome<string[]>
  /** The text of the document. `missing`: the client has no call that reads one. */
  document: Outcome<string> | { missing: true }
  read: Outcome<Answer>
  dryRun: Outcome<Answer>
  unknownArgument: Outcome<Answer>
  refusal: Outcome<Answer>
  close: Outcome<undefined>
}

/** The calls that every client makes: the tool with its arguments, by the name of the step. */
export const CALLS = {
  read: ['get-labels', { key: 'env', fields: ['key', 'value'] }],
  dryRun: ['create-label', { key: 'env', value: 'quarantine', dry_run: true }],
  unknownArgument: ['get-labels', { key: 'env', colour: 'red' }],
  refusal: ['delete-label', { key: 'env', value: 'nowhere', dry_run: true }],
} as const

const READ = {
  labels: ['prod', 'staging', 'test', 'dev'].map((value) => ({ key: 'env', value })),
  total_count: 4,
  pce_total: 4,
  truncated: false,
}
const DRY_RUN = {
  dry_run: true,
  message: 'Would create the label "env=quarantine".',
  requests: [{ method: 'POST', path: '/orgs/1/labels', body: { key: 'env', value: 'quarantine' } }],
}

/** What the table says of each step. */
export type Step = 'tools' | 'document' | 'read' | 'dryRun' | 'unknownArgument' | 'refusal'

/** Facts that are independent of the client: the names of the tools, sorted, and the text of the document. */
export interface Expected {
  tools: string[]
  document: string
}

/**
 * Judges one session. Returns a word for the table for each step, or the failure: what the client saw instead of what
 * is expected.
 */
export function judgeSession(
  client: TriedClient,
  session: Session,
  expected: Expected,
): Record<Step, { word: string } | { failure: string }> {
  const connected = session.connect
  const judge = (step: (session: Session) => { word: string } | { failure: string }) =>
    connected === undefined ? step(session) : { failure: `it did not connect: ${connected.thrown}` }
  return {
    tools: judge(({ tools }) =>
      isDeepStrictEqual(tools.value?.toSorted(), expected.tools)
        ? { word: String(expected.tools.length) }
        : fail(tools.value?.join(', ') ?? tools),
    ),
    document: judge(({ document }) => {
      if ('missing' in document) return { word: 'no call for it' }
      return document.value === expected.document ? { word: 'yes' } : fail(document)
    }),
    read: judge(({ read }) => judgeAnswer(read, READ)),
    dryRun: judge(({ dryRun }) => judgeAnswer(dryRun, DRY_RUN)),
    unknownArgument: judge(({ unknownArgument: outcome }) =>
      client.ownWords !== undefined && outcome.thrown === client.ownWords
        ? { word: 'refused by the client' }
        : judgeRefusal(outcome, 'invalid_argument', '/colour: unknown argument'),
    ),
    refusal: judge(({ refusal }) => judgeRefusal(refusal, 'not_found', 'No label is exactly "env=nowhere"')),
  }
}

function judgeAnswer(outcome: Outcome<Answer>, expected: object) {
  const { value } = outcome
  if (value === undefined || value.isError) return fail(outcome)
  return isDeepStrictEqual(parse(value.text), expected) ? { word: 'yes' } : fail(outcome)
}

/** Judges an error of the server, which a client returns as a result or throws with words of its own around it. */
function judgeRefusal(outcome: Outcome<Answer>, code: string, words: string) {
  const text = outcome.thrown ?? (outcome.value.isError ? outcome.value.text : '')
  const error = parse(text.slice(text.indexOf('{'))) as { error?: string; message?: string } | undefined
  if (error?.error !== code || error.message?.includes(words) !== true) return fail(outcome)
  return { word: outcome.thrown === undefined ? 'in a result' : 'as an exception' }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const fail = (seen: unknown) => ({ failure: JSON.stringify(seen).slice(0, 500) })
