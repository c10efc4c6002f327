/** @param {string} url @param {import('diptych-rest').Options} [options] @returns {LiveDataProvider} */
export function diptychDataProvider(url: string, options?: import("diptych-rest").Options): LiveDataProvider;
/** Read the resource of the view again when it changes: `<List><Live />…</List>`. @param {{ resource?: string }} props */
export function Live(props: {
    resource?: string;
}): null;
export type LiveEvent = {
    type: "created" | "updated" | "deleted" | "gap";
    topic: string;
    payload: {
        ids: (string | number)[];
    };
};
export type LiveCallback = (event: LiveEvent) => void;
export type LiveDataProvider = import("ra-core").DataProvider & {
    subscribe: (topic: string, callback: LiveCallback) => Promise<void>;
    unsubscribe: (topic: string, callback: LiveCallback) => Promise<void>;
};
