/** @param {string} url @param {import('diptych-rest').Options} [options] @returns {LiveDataProvider} */
export function diptychDataProvider(url: string, options?: import("diptych-rest").Options): LiveDataProvider;
/** Read the resource of the view again when it changes: `<List><Live />…</List>`. @param {{ resource?: string }} props */
export function Live(props: {
    resource?: string;
}): null;
export type LiveDataProvider = import("ra-core").DataProvider & Pick<import("diptych-rest").Connection, "follow">;
