export type Bit = (dimension: string, value: string) => bigint
