import { Type } from '@sinclair/typebox'

/** Most objects one answer may name, whatever the caller asks for. */
export const MAX_PAGE = 10_000

/** Of every tool that answers rows: which of their fields (D131). */
export const FieldsInput = {
  fields: Type.Optional(Type.Array(Type.String(), { description: 'Of a row' })),
}

/** Input properties every list tool takes (D2). */
export const PagingInput = {
  max_results: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Page size' })),
  cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
  ...FieldsInput,
}

/** As PagingInput, for tools whose answers are short unless more is asked for. */
export const pagingInput = (most: number) => ({
  ...PagingInput,
  max_results: Type.Optional(Type.Integer({ ...PagingInput.max_results, default: most })),
})

/** Output properties every list tool answers (D2). */
export const PagingOutput = {
  total_count: Type.Integer({ description: 'Matches in all' }),
  pce_total: Type.Integer({ description: 'X-Total-Count of the query' }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
}
