import { Type } from '@sinclair/typebox'
import { DryRunOutput } from './dry-run.js'

/**
 * The output property for fields that the PCE dropped or changed while storing an object. They are found by reading the
 * object again after the write.
 */
export const DifferencesOut = Type.Optional(
  Type.Array(Type.Unsafe<{ field: string; sent: unknown; stored: unknown }>({ type: 'object' }), {
    description: 'Stored differently, each as {field, sent, stored}',
  }),
)

/**
 * The output properties of every tool that changes one object. In addition, such a tool returns the object with its
 * href, in its current state or, in a dry run, in the state that it would have after the change.
 */
export const UpdateOutput = {
  message: Type.String({ description: 'What happened' }),
  updated_fields: Type.Optional(Type.Array(Type.String(), { description: 'Fields sent; [] if unchanged' })),
  previous: Type.Optional(Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'Values before' })),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
}

/** The output property in which a dry run shows what a change of enforcement mode would do (D78). */
export const EffectOut = Type.Optional(
  Type.Unsafe<object>({
    type: 'object',
    description: 'Dry run of another mode: from, to, and the observed traffic that would be cut',
  }),
)

/** The output of a tool that creates one object, apart from the object itself. */
export const CreateOutput = {
  message: UpdateOutput.message,
  differences: DifferencesOut,
  warnings: UpdateOutput.warnings,
  ...DryRunOutput,
}

/** The output properties of every tool that deletes one object. */
export const DeleteOutput = {
  message: UpdateOutput.message,
  href: Type.Optional(Type.String()),
  warnings: UpdateOutput.warnings,
  ...DryRunOutput,
}
