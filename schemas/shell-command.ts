import { Type } from '@sinclair/typebox'

/**
 * The input schema of a shell command that runs as a tool call. It has no arguments, because the command reads its
 * options from the command line.
 */
export const NoArguments = Type.Object({}, { additionalProperties: false })

/** The output schema of a shell command that runs as a tool call. The command itself prints what the person sees. */
export const Ended = Type.Object({ message: Type.String() })
