// Steps of a scenario: each prints what came of it, or its error, and none keeps the next from being tried.
//     await step('create', async () => …)        done()        →   {"create": …}
const found = {}

export async function step(name, work) {
  try {
    found[name] = (await work()) ?? null
  } catch (error) {
    found[name] = { failed: String(error?.stack ?? error) }
  }
  return found[name]
}

export function done() {
  process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0))
}
