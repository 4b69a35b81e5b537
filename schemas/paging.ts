import { type TInteger, Type } from '@sinclair/typebox'

/** Maximum number of objects in one answer, regardless of what the caller requests. */
export const MAX_PAGE = 10_000

/**
 * The default page sizes of list tools (D254), about as many rows as a person would read: 50 for short rows such as
 * labels, and 25 for rows with many fields.
 */
export const SHORT_ROWS = 50
export const LONG_ROWS = 25

/** The argument `fields` of every tool that returns rows. It selects which fields the rows have (D131). */
export const FieldsInput = {
  fields: Type.Optional(Type.Array(Type.String(), { description: 'Only these' })),
}

/** The paging arguments of every list tool (D2). */
export const PagingInput = {
  max_results: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Page size' })),
  cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
  ...FieldsInput,
}

/**
 * Returns `PagingInput` with the default page size `most`. The default is stored as `usual`, for the documentation, and
 * not as the schema's `default`: a tool must be able to see whether the caller chose a size. tools/list need not
 * mention it, because each answer tells the model how many rows follow.
 */
export const pagingInput = (most: number) => ({
  ...PagingInput,
  max_results: usualSize(PagingInput.max_results, most),
})

/** Returns the schema of an optional integer argument, with the value that the tool uses if the argument is absent. */
export const usualSize = (schema: TInteger, most: number) => Type.Optional(Type.Integer({ ...schema, usual: most }))

/** The paging properties in the answer of every list tool (D2). */
export const PagingOutput = {
  total_count: Type.Integer({ description: 'Matches in all' }),
  pce_total: Type.Integer({ description: 'X-Total-Count of the query' }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
}
