import { Type, type TObject, type TSchema } from '@sinclair/typebox'
import { OPEN_FIELDS } from './synonyms.js'

/**
 * Creates the schema of a reference to a PCE object, which callers can give as a string or as a JSON object. The schema
 * does not list the properties of the JSON object: the code that resolves the reference checks them, because it can
 * explain what would be right. tools/list shows only the string, because it shows only the first alternative of every
 * union (D243).
 */
export const TextOrObject = <T extends object>(fields: readonly (T extends unknown ? keyof T & string : never)[]) =>
  Type.Union([Type.String(), Type.Unsafe<T>({ type: 'object', [OPEN_FIELDS]: fields })])

/**
 * Creates the schema of a reference that tools/list shows as a JSON object, because a string cannot express everything
 * that the object can. Here too, the code that resolves the reference checks the properties.
 */
export const ObjectOrText = <T extends object>(
  properties: Record<keyof T & string, TSchema>,
  required?: readonly (keyof T & string)[],
) => {
  const fields = { properties, ...(required !== undefined && { required }), [OPEN_FIELDS]: Object.keys(properties) }
  return Type.Union([Type.Unsafe<T>({ type: 'object', ...fields }), Type.String()])
}

/** A label in any form that callers may use: `"key=value"`, an href, `{key, value}` or `{href}`. */
export const LabelReference = TextOrObject<{ key?: string; value?: string; href?: string }>(['key', 'value', 'href'])

/** The argument that selects objects which have all given labels. */
export const LabelsFilter = Type.Optional(
  Type.Union([Type.Array(LabelReference, { maxItems: 50 }), Type.String({ maxLength: 16_384 })], {
    description: 'Has all of these; labelgroup:NAME too',
  }),
)

/** An application as `app|env` or `{app, env}`, or an app or env label in any form. */
export const ApplicationReference = TextOrObject<
  { key?: string; value?: string; href?: string } | { app: string; env: string }
>(['key', 'value', 'href', 'app', 'env'])

/** The form in which answers show a label. */
export const LabelOut = Type.Object(
  { href: Type.String(), key: Type.String(), value: Type.String() },
  { description: 'Label' },
)

/** Creates the schema of a list of labels, each as `key=value` or, in full detail, as an object. */
export const LabelsOut = <T extends TObject>(full: T, description: string) =>
  Type.Array(Type.Union([Type.String(), full]), { description })

/** Formats a label as `key=value`, a form in which callers can refer to it. */
export const writeLabel = ({ key, value }: { key: string; value: string }): string => `${key}=${value}`
