import { Type } from '@sinclair/typebox'

/** The arguments of a shell command that runs as a tool call: none, because the command has read its options itself. */
export const NoArguments = Type.Object({}, { additionalProperties: false })

/** The answer of a shell command that runs as a tool call. What the person sees is printed by the command. */
export const Ended = Type.Object({ message: Type.String() })
