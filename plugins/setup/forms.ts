import { describeRegistration, describeRemoval, describeTest } from './describe-outcome.js'
import { findFieldErrors, withoutValues, type FieldErrors } from './find-field-errors.js'
import { REGISTER_TOOL, REMOVE_TOOL, TEST_TOOL } from './form-fields.js'
import { noticeOf, type Notice } from './notice.js'
import type { ToolAnswer } from './ports.js'
import { readForm } from './read-form.js'

/** What became of a form, for the page after it. */
export interface Outcome {
  notice: Notice | null
  errors: FieldErrors | null
  /** The page is shown in answer to the form itself, with the status of the error; otherwise the browser is sent to a fresh one. */
  staysHere: boolean
}

export interface Form {
  path: string
  tool: string
  /** Whether the limit of tries is asked first. A registration has one of its own, which refused hosts do not count against. */
  isLimited: boolean
  readArguments(fields: Readonly<Record<string, unknown>>): Record<string, unknown>
  describe(answer: ToolAnswer, sent: Readonly<Record<string, unknown>>): Outcome
}

const told = (notice: Notice): Outcome => ({ notice, errors: null, staysHere: false })

/** The forms of the page, each of which is one call of a tool. */
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
        : { notice: noticeOf('Nothing was removed.', answer.error), errors: null, staysHere: true },
  },
  {
    path: '/setup/test',
    tool: TEST_TOOL,
    isLimited: true,
    readArguments: () => ({}),
    // That the PCE cannot be used is a result of the test as well.
    describe: (answer) => told(describeTest(answer)),
  },
]

function describeRefusedRegistration(
  error: Extract<ToolAnswer, { ok: false }>['error'],
  sent: Readonly<Record<string, unknown>>,
): Outcome {
  const errors = error.code === 'invalid_argument' ? findFieldErrors(error.details, sent) : null
  if (errors !== null && errors.fields.size + errors.others.length > 0) return { notice: null, errors, staysHere: true }
  const message = withoutValues(error.message, sent)
  return { notice: noticeOf('Nothing was stored.', { ...error, message }), errors: null, staysHere: true }
}
