import type { ServiceError } from '../../errors/convert.js'
import {
  type FieldErrors,
  findFieldErrors,
  readForm,
  REGISTER_TOOL,
  REMOVE_TOOL,
  TEST_TOOL,
  withoutValues,
} from './form-fields.js'
import type { Notice } from '../layout/page-layout.js'
import type { ToolAnswer } from '../ports.js'

/** The result of a submitted form, as the next page shows it. */
export interface FormOutcome {
  notice: Notice | null
  errors: FieldErrors | null
  /**
   * True if the PCE did not accept a new key that was to replace a registered one. The form then offers to store the
   * new key all the same.
   */
  canInsist?: boolean
  /**
   * If true, the page is sent as the direct answer to the form, with the status of the error. Otherwise, the browser is
   * redirected to the page.
   */
  staysHere: boolean
}

export interface Form {
  path: string
  tool: string
  /**
   * True if each use of the form counts towards the limit on connection tests. A registration has a limit of its own
   * instead, unless its host is not permitted.
   */
  isLimited: boolean
  readArguments(fields: Readonly<Record<string, unknown>>): Record<string, unknown>
  describe(answer: ToolAnswer, sent: Readonly<Record<string, unknown>>): FormOutcome
}

const told = (notice: Notice): FormOutcome => ({ notice, errors: null, staysHere: false })

/** The forms of the page, each of which makes one tool call. */
export const FORMS: readonly Form[] = [
  {
    path: '/setup',
    tool: REGISTER_TOOL,
    isLimited: false,
    readArguments: readForm,
    describe: (answer, sent) =>
      answer.ok ? told(describeRegistration(answer.value)) : describeRefusedRegistration(answer.error, sent),
  },
  {
    path: '/setup/remove',
    tool: REMOVE_TOOL,
    isLimited: false,
    readArguments: () => ({}),
    describe: (answer) =>
      answer.ok
        ? told(describeRemoval(answer.value))
        : { notice: noticeOf('Nothing was removed', answer.error), errors: null, staysHere: true },
  },
  {
    path: '/setup/test',
    tool: TEST_TOOL,
    isLimited: true,
    readArguments: () => ({}),
    // For a connection test, a PCE that cannot be used is a regular result and not an error.
    describe: (answer) => told(describeTest(answer)),
  },
]

function describeRefusedRegistration(
  error: Extract<ToolAnswer, { ok: false }>['error'],
  sent: Readonly<Record<string, unknown>>,
): FormOutcome {
  const errors = error.code === 'invalid_argument' ? findFieldErrors(error.details, sent) : null
  if (errors !== null && errors.fields.size + errors.others.length > 0) return { notice: null, errors, staysHere: true }
  const message = withoutValues(error.message, sent)
  if (error.details.kept === true) {
    const text = `${message} Correct the entry, or tick the box at the end of the form to store it all the same.`
    return {
      notice: notice('bad', 'The new key was not accepted', text),
      errors: null,
      canInsist: true,
      staysHere: true,
    }
  }
  return { notice: noticeOf('Nothing was stored', { ...error, message }), errors: null, staysHere: true }
}

/**
 * Describes the result of a registration. If the connection to the PCE failed, the notice is a warning and not an
 * error, because the credentials have been stored (D18).
 */
function describeRegistration(value: object): Notice {
  const { connection } = value as { connection?: { ok: boolean; error?: { message: string } } }
  if (connection?.ok === false) {
    const reason = connection.error?.message ?? 'It did not answer.'
    return notice('warning', 'Your PCE credentials are stored, but do not work yet', reason)
  }
  const tried = connection?.ok === true ? 'The PCE accepted them.' : ''
  return notice('good', 'Your PCE credentials are stored', `${tried} All tools of your role are ready to use.`.trim())
}

function describeRemoval(value: object): Notice {
  const { status } = value as { status?: string }
  return status === 'noop'
    ? notice('warning', 'There were no credentials to remove')
    : notice('good', 'Your PCE credentials have been removed', 'Revoke the API key in the PCE console as well.')
}

function describeTest(answer: ToolAnswer): Notice {
  if (!answer.ok) return noticeOf('The PCE could not be used', answer.error)
  const { version, latency_ms: latency } = answer.value as { version?: string; latency_ms?: number }
  const release = version === undefined ? '' : ` It runs release ${version}.`
  const time = latency === undefined ? '' : ` The answer took ${latency} ms.`
  return notice('good', 'The PCE answered and accepts your credentials', `${release}${time}`.trim())
}

const LONGEST_TEXT = 400

const notice = (kind: Notice['kind'], title: string, text = ''): Notice => ({
  kind,
  title,
  text: text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text,
})

/** Builds a notice about the error of a tool call. It also says what the person can do. */
const noticeOf = (title: string, { message, hint }: Pick<ServiceError, 'message' | 'hint'>): Notice =>
  notice('bad', title, hint === undefined ? message : `${message} ${hint}`)
