export function step(name: string, work: () => Promise<unknown>): Promise<unknown>
export function done(): void
