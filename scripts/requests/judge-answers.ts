import { isDeepStrictEqual } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { validateArguments } from '../../plugins/dispatcher/validate-arguments.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'

/** A call of a tool, as the wanted answer to a request or as the answer of a model. */
export interface Call {
  tool: string
  arguments: Record<string, unknown>
}

/** A request in the words of an operator, with the call that it leads to. */
export interface Request extends Call {
  request: string
}

export interface Judgement {
  /** How many answers name the wanted tool. */
  tools: number
  /** How many of these have the wanted arguments as well, once the server has read both. */
  arguments: number
  /** What is wrong with the others, one sentence each that begins with the number of the request. */
  faults: string[]
}

/**
 * Compares the answers of a model with the wanted calls.
 *
 * Arguments are the same if the server reads them as the same, so that synonyms and defaults that are written out do
 * not count as faults. Arguments that the listed schema refuses are a fault even if the server takes them, because many
 * clients validate a call before they send it.
 *
 * @param answers the answers by the number of the request, from 1; a missing one is a fault.
 */
export function judgeAnswers(
  requests: readonly Request[],
  answers: ReadonlyMap<number, Call>,
  tools: readonly AnyTool[],
): Judgement {
  const ajv = new Ajv2020({ strict: true, validateFormats: false })
  const judgement: Judgement = { tools: 0, arguments: 0, faults: [] }
  for (const [at, wanted] of requests.entries()) {
    const answer = answers.get(at + 1)
    const tool = tools.find(({ name }) => name === wanted.tool)
    if (tool === undefined) throw new Error(`request ${at + 1}: there is no tool ${wanted.tool}`)
    if (answer?.tool === tool.name) judgement.tools++
    const fault =
      answer?.tool === tool.name
        ? faultOf(tool, wanted, answer, ajv)
        : `${answer?.tool ?? 'no answer'} instead of ${tool.name}`
    if (fault === undefined) judgement.arguments++
    else judgement.faults.push(`${at + 1}: ${fault}`)
  }
  return judgement
}

function faultOf(tool: AnyTool, wanted: Call, answer: Call, ajv: Ajv2020): string | undefined {
  const sent = JSON.stringify(answer.arguments)
  if (!ajv.validate(listTool(catalogueOf([tool])[0]!).inputSchema, answer.arguments))
    return `${tool.name}: the list refuses ${sent}: ${ajv.errorsText()}`
  try {
    const [read, asked] = [answer, wanted].map((call) => validateArguments(tool, call.arguments))
    return isDeepStrictEqual(read, asked) ? undefined : `${tool.name}: ${sent}, not ${JSON.stringify(wanted.arguments)}`
  } catch (error) {
    return `${tool.name}: the server refuses ${sent}: ${error instanceof Error ? error.message : String(error)}`
  }
}
