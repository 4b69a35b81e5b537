import { Value } from '@sinclair/typebox/value'
import type { TypeCheck } from '@sinclair/typebox/compiler'
import type { TSchema } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'
import { compileSchema } from './compile-schema.js'
import { describeProblems, type Problem } from './describe-problems.js'
import { findOversized } from './find-oversized.js'

const inputs = new WeakMap<AnyTool, TypeCheck<TSchema>>()
const outputs = new WeakMap<AnyTool, TypeCheck<TSchema>>()

/**
 * The arguments with the schema's defaults filled in, on a copy. Throws ToolError `invalid_argument {problems: [{path, message}]}`
 * that names every bad path. Schemas are compiled at their first use.
 */
export function validateArguments(tool: AnyTool, args: Record<string, unknown>): Record<string, unknown> {
  const check = compiled(inputs, tool, tool.input)
  refuse(tool, findOversized(args))
  // structuredClone keeps an own `__proto__` what it is, a name nobody knows.
  const copy = Value.Default(tool.input, structuredClone(args)) as Record<string, unknown>
  if (check.Check(copy)) return copy
  refuse(tool, describeProblems(check.Errors(copy)))
  throw new ToolError('invalid_argument', `${tool.name}: the arguments do not fit its schema`)
}

function refuse(tool: AnyTool, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  throw new ToolError('invalid_argument', `${tool.name}: ${problems.map(inWords).join('; ')}`, { problems })
}

/** What is wrong with a tool's answer by its own output schema; empty when nothing is. */
export function findOutputProblems(tool: AnyTool, value: unknown): Problem[] {
  const check = compiled(outputs, tool, tool.output)
  return check.Check(value) ? [] : describeProblems(check.Errors(value))
}

function compiled(cache: WeakMap<AnyTool, TypeCheck<TSchema>>, tool: AnyTool, schema: TSchema): TypeCheck<TSchema> {
  let check = cache.get(tool)
  if (check === undefined) {
    check = compileSchema(schema)
    cache.set(tool, check)
  }
  return check
}

const inWords = (problem: Problem) => `${problem.path || 'arguments'}: ${problem.message}`
