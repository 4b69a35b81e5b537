/** Returns the number of cases of a property: all of them where a `*.long.ts` asks for them, a fifth in `npm test`. */
export const runsOf = (all: number): number => (process.env.PROPERTY_CASES === 'all' ? all : Math.ceil(all / 5))
