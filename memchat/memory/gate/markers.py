"""The words, by language, that change what the words beside them mean.

Lists exist for English, German, French, Spanish, Italian, Portuguese, Dutch, Turkish, Russian,
Japanese, Chinese, Arabic, Hindi, Korean and Thai. In any other language short quotes go to review.
Patterns are written as ``text.fold`` leaves text: case folded, straight apostrophes, no dotless i.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache

_MARK = r"\w\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"


@dataclass(frozen=True, slots=True)
class Language:
    """One language's lists, as alternatives of a regular expression."""

    function_words: str
    negation: str
    hypothetical: str
    """if, would, maybe: what is not so."""
    reported: str
    """he says, according to: what somebody else holds."""
    relative: str
    """my boss, my mother: the sentence is about somebody else."""
    first_person: str
    """How a clause about the speaker opens."""
    question: str = r"(?!)"
    """Questions that need no mark, and the words that open a question's clause."""
    fiction: str = r"(?!)"
    """From here on it is a game or somebody else's text."""
    correction: str = r"(?!)"
    """How a sentence opens that takes the one before back."""
    passing: str = r"(?!)"
    """this week, tonight: true for a while only."""
    acceptance: str = r"(?!)"
    """yes, the first one, that: words that point at what was offered."""
    harmless: str = r"(?!)"
    """Set phrases that hold a marker and mean none."""
    spaced: bool = True


LANGUAGES: dict[str, Language] = {
    "en": Language(
        "the a an and or but of to in on at is am are was be been my me we our you your it its this that with for"
        " from have has had do does not so as i'm i've it's by hate love like prefer want need live they there about all than too can't don't didn't doesn't won't isn't wasn't aren't i'll i'd we're we've",
        r"not|no|never|none|nobody|nothing|neither|nor|without|hardly|barely|cannot|\w+n't|dont|doesnt|didnt|cant|wont|isnt"
        r"|stopped|quit|gave up|used to|no longer|dislikes?|hates?|avoids?|refuse[sd]?|refrains?|far from|anything but",
        r"if|would|\w+'d|wouldn't|imagine|imagining|suppose|supposing|pretend\w*|as though|hypothetically|maybe|perhaps|might"
        r"|could|unless|wish|what if|let's say|assum\w+|probably|possibly|thinking of|thinking about|considering|doubt|yeah right|supposed to",
        r"(?:he|she|they|someone|somebody|people|everyone|everybody|who|friends?|boss|mother|father|mum|mom|dad|sister|brother"
        r"|wife|husband|partner|doctor|teacher|colleagues?) (?:\w+ )?(?:says?|said|thinks?|thought|claims?|claimed|believes?"
        r"|told|tells|wants?|wanted|reckons?|insists?|suggests?|suggested|wrote|keeps? saying)|according to|i(?:'ve)? (?:heard|read) that|told me|it says|(?!(?:i|we)\b)\w+ (?:wrote|writes|claims?|claimed)|(?!(?:i|we|as)\b)\w+ says|(?!(?:i|we|as)\b)\w+ said",
        r"he|she|they|he's|she's|they're|who|whose|(?:my|our|his|her|their|a)(?: \w+){0,2}? (?:mother|father|mum|mom|dad|parents?|sister|brother|wife|husband|partner|girlfriend"
        r"|boyfriend|son|daughter|kids?|children|uncle|aunt|cousin|niece|nephew|gran\w*|friends?|boss|manager|colleagues?|coworkers?"
        r"|neighbou?rs?|roommate|flatmate|landlord|teacher|doctor|teammate|in-laws?)(?! and i\b)|the (?:neighbou?rs?|landlord|tenant|roommate)(?:'s)?",
        r"i|i'm|i've|i'll|im|ive|my|we|we're|we've|our|mine|me|and i|but i|so i",
        r"(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has) (?:i|you|we|they|he|she|it|my|there|that|this|the)"
        r"|what(?:'s| is| are| do| does| time| should| can| could| would|\b)|where|why|how|which|who|any|when (?:is|do|does|should|can|will)|so what|so how",
        r"pretend\w*|role[- ]?play\w*|imagine|let's play|in (?:this|my|the) (?:story|novel|game|scene)|my character|as if i|you are now|speaking as|in the voice of|repeat after me|as a troll|in scenario|let \w be|(?:lyrics?|sample|example|test data|dummy data|scenario|template|role of|line from)(?: [^.!?\n:]{0,40})?:"
        r"|(?:write|draft|compose) (?:me )?(?:a|an|the|some)?\s?(?:\w+ )?(?:story|poem|letter|monologue|scene|song|dialogue|novel|speech|script|bio|profile|ad|post|tweet|caption|sentence|essay|joke|review|email|e-mail|diary)",
        r"actually|no wait|wait|scratch that|correction|i meant?|sorry,? i mean\w*|just kidding|kidding|i was joking|joking|never ?mind|wrong|oops|that's not|that is not|forget (?:that|it)|or (?:so|not|at least)",
        r"today|tonight|this (?:week|morning|afternoon|evening|weekend|month|quarter)|for now|temporarily|until|till|tomorrow",
        r"yes|yeah|yep|sure|ok|okay|agreed|exactly|right|correct|deal|perfect|please|go (?:with|for)|take|pick|choose|let's|the (?:first|second|third|fourth|fifth|last|latter|former|other|one|same)"
        r"|(?:first|second|third|fourth|fifth|last) one|number \d|option \w|that(?: one)?|this one|both|either|it is|sounds good|\d",
        r"can't wait|cannot wait|don't forget|do not forget|no problem|no worries|no doubt|not only|not just|why not|would like|would love|\w+'d (?:like|love|rather|prefer|say)|would rather|would prefer|what not|no idea|if you (?:like|want|can)|(?:please |so )(?:please )?(?:don't|do not|no)|could you|would you|get used to|used to it|am used to|not least|maybe (?:a )?(?:little |bit )?(?:bit |few )?(?:more|less)|if (?:you|it|that|this)(?:'re| are)? (?:\w+ )?(?:helps?|matters?|need|wonder\w*|ask\w*|care|curious|must know|relevant|useful)",
    ),
    "de": Language(
        "der die das den dem des ein eine einen einem und oder aber ich bin ist sind war mein meine meinen wir unser du"
        " mit für von im am zu zum zur auf auch habe hat nicht es um bei seit als",
        r"nicht|kein\w*|nie|niemals|nichts|niemand|ohne|weder|nein|kaum|aufgehört|früher|nimmer|hasse|meide|ungern",
        r"wenn|falls|würde\w*|wäre\w*|hätte\w*|könnte\w*|vielleicht|angenommen|stell dir vor|als ob|möglicherweise|wohl|eventuell|überlege",
        r"(?:er|sie|man|jemand|freund\w*|chef\w*|mutter|vater|schwester|bruder|frau|mann|arzt|ärztin) (?:sagt\w*|meint\w*|denkt|dachte|findet|fand|glaubt\w*|behauptet\w*|will|schrieb)|laut|angeblich|habe gehört|soll angeblich",
        r"er|sie|(?:mein|meine|unser|unsere|sein|seine|ihr|ihre)(?: \w+)?? (?:mutter|mama|vater|papa|eltern|schwester|bruder|frau|mann|partner\w*|sohn|tochter|kinder|onkel|tante|oma|opa|freund\w*|chef\w*|kolleg\w+|nachbar\w*|ärztin|arzt|lehrer\w*)(?! und ich\b)",
        r"ich|mein\w*|wir|unser\w*|mir|mich",
        r"(?:soll|kann|darf|muss|bin|habe|ist|sind|hast|kannst|gibt) (?:ich|es|du|das|wir|man|sie|mein\w*)|was|wo|wie|wann|warum|welche\w*|wer",
        r"rollenspiel|tu so|stell dir vor|in (?:der|meiner) geschichte|meine figur|(?:beispiel\w*|liedtext|songtext|rolle de[rs]|szenario|vorlage)(?: [^.!?\n:]{0,40})?:|schreib\w* (?:mir )?(?:ein\w*) (?:\w+ )?(?:geschichte|gedicht|brief|anschreiben|szene|rede)",
        r"quatsch|moment|nein warte|korrektur|ich meinte?|sorry|doch nicht|war nur spaß|scherz|vergiss das|falsch|ach nein",
        r"heute|heute abend|diese woche|diesen monat|vorerst|bis|morgen",
        r"ja|genau|gern\w*|ok|okay|klar|stimmt|richtig|einverstanden|nehm\w*|d(?:er|ie|as|en) (?:erste|zweite|dritte|vierte|letzte|andere)\w*|das|dies\w*|beide\w*|passt|\d",
        r"nicht nur|kein problem|keine sorge|nicht vergessen|keine ahnung|würde gern\w*|hätte gern\w*|möchte|(?:wenn|falls) (?:du|sie) (?:magst|willst|kannst|fragst|fragen)|(?:wenn|falls) (?:es|das|dir das) hilft",
    ),
    "fr": Language(
        "le la les un une des du de et ou mais je suis est sont mon ma mes nous notre vous avec pour dans sur à au aux"
        " j'ai c'est ai que qui ce cette depuis chez",
        r"ne|n'\w+|pas|jamais|rien|aucune?|personne|sans|ni|non|plus|arrêté|déteste|évite|guère",
        r"si|s'il\w*|serais|serait|aurais|aurait|pourrais|pourrait|voudrais|peut-être|imagine\w*|supposons|comme si|éventuellement|probablement",
        r"(?:il|elle|ils|elles|on|ami\w*|chef\w*|mère|père|sœur|frère|femme|mari|médecin) (?:\w+ )?(?:dit|disent|a dit|pense\w*|croit|prétend|trouve|veut)|selon|d'après|il paraît|me dit|m'a dit",
        r"il|elle|ils|elles|(?:mon|ma|mes|notre|nos|son|sa|ses)(?: \w+)?? (?:mère|père|parents|sœur|frère|femme|mari|fils|fille|enfants|oncle|tante|ami\w*|copain|copine|chef\w*|patron\w*|collègue\w*|voisin\w*|médecin|compagn\w+)(?! et moi\b)",
        r"je|j'\w+|mon|ma|mes|nous|notre|moi",
        r"est-ce|qu'est-ce|que|quel\w*|où|comment|pourquoi|combien|quand est|qui",
        r"jeu de rôle|fais semblant|imagine\w*|dans (?:cette|mon) (?:histoire|roman)|mon personnage|(?:exemple|paroles|rôle d\w+|scénario|modèle)(?: [^.!?\n:]{0,40})?:|écris\w* (?:moi )?(?:une?) (?:\w+ )?(?:histoire|poème|lettre|scène|chanson|discours)",
        r"en fait|non attends?|attends?|je voulais dire|pardon|je plaisante\w*|oublie|correction|faux",
        r"aujourd'hui|ce soir|cette semaine|ce mois|pour l'instant|jusqu'\w+|demain",
        r"oui|ok|d'accord|exactement|bien sûr|parfait|va pour|prends|l[ea] (?:premi\w+|deuxième|second\w*|troisième|derni\w+|autre)|celui|celle|ça|cela|les deux|\d",
        r"pas de problème|pas de souci|n'oublie pas|pourquoi pas|non seulement|ne \w+ que|en plus|plus de|de plus en plus|voudrais|j'aimerais|s'il (?:te|vous) plaît|de plus|si (?:ça|cela) (?:peut |t'|vous )?\w*aide\w*|si (?:tu veux|vous voulez) savoir",
    ),
    "es": Language(
        "el la los las un una unos de del y o pero yo soy es son está estoy mi mis nos nuestro con para por en que al"
        " lo se me tengo vivo desde como",
        r"no|nunca|jamás|nada|nadie|ningun\w*|ningún|sin|tampoco|ni|dejé|odio|evito",
        r"si|sería|estaría|tendría|podría|viviría|quizás?|tal vez|imagina\w*|supongamos|supon|como si|fuera|ojalá|a lo mejor|probablemente",
        r"(?:él|ella|ellos|amig\w+|jef\w+|madre|padre|hermana|hermano|mujer|marido|médic\w+) (?:\w+ )?(?:dice\w*|dijo|piensa\w*|cree\w*|afirma|quiere|opina)|según|dicen que|me dijo|me dice|he oído",
        r"él|ella|ellos|ellas|(?:mi|mis|nuestr\w+|su|sus)(?: \w+)?? (?:madre|padre|mamá|papá|padres|hermanas?|hermanos?|mujer|esposa|marido|esposo|hij\w+|tí[oa]|abuel\w+|amig\w+|jef\w+|compañer\w+|vecin\w+|médic\w+|novi[oa]|pareja)(?! y yo\b)",
        r"yo|mi|mis|me|soy|estoy|tengo|vivo|trabajo|nosotros|nuestr\w+|nos",
        r"qué|cuál\w*|dónde|cómo|cuándo|por qué|quién\w*|cuánt\w+",
        r"juego de rol|finge|imagina\w*|en (?:esta|mi) (?:historia|novela)|mi personaje|(?:ejemplo|letra|papel de\w*|guion|plantilla)(?: [^.!?\n:]{0,40})?:|escribe\w* (?:una?) (?:\w+ )?(?:historia|cuento|poema|carta|escena|canción|discurso)",
        r"en realidad|no espera|espera|quise decir|quería decir|perdón|es broma|era broma|olvida\w*|corrección|mentira",
        r"hoy|esta noche|esta semana|este mes|por ahora|de momento|hasta|mañana",
        r"sí|vale|ok|claro|de acuerdo|exacto|perfecto|l[ao]s? (?:primer\w*|segund\w+|tercer\w*|últim\w+|otr\w+)|el (?:primero|segundo|tercero|último|otro)|es[eao]|est[eao]|ambos|\d",
        r"no hay problema|no te preocupes|no olvides|por qué no|no sólo|no solo|sin duda|sin embargo|si (?:te|le|os) (?:sirve|ayuda|interesa)|si quieres saber",
    ),
    "it": Language(
        "il lo gli un uno una di del della e ma io sono è mio mia miei mie con per in che al ho vivo da nel nella",
        r"non|no|mai|niente|nulla|nessun\w*|senza|né|neanche|odio|evito|smesso",
        r"se|sarei|sarebbe|avrei|vorrei|potrei|potrebbe|forse|immagina\w*|supponiamo|magari|come se|fossi|probabilmente",
        r"(?:lui|lei|loro|amic\w+|capo|madre|padre|sorella|fratello|moglie|marito) (?:\w+ )?(?:dice|dicono|ha detto|pensa|crede|vuole)|secondo|mi ha detto|dicono che",
        r"lui|lei|loro|(?:mi[oa]|miei|mie|nostr\w|su[oa])(?: \w+)?? (?:madre|padre|mamma|papà|genitori|sorella|fratello|moglie|marito|figli\w*|zi[oa]|nonn\w|amic\w+|capo|collega|vicin\w|medico|ragazz\w)(?! e io\b)",
        r"io|mi[oa]|miei|mi|noi|sono|ho|vivo|lavoro|abito",
        r"cosa|che|quale|quali|dove|come|perché|chi|quanto|quando è",
        r"gioco di ruolo|(?:esempio|testo della canzone|ruolo d\w+)(?: [^.!?\n:]{0,40})?:|fai finta|immagina\w*|scrivi\w* (?:una?) (?:\w+ )?(?:storia|poesia|lettera|scena)",
        r"anzi|no aspetta|aspetta|volevo dire|scusa|scherzo|scherzavo|lascia perdere",
        r"oggi|stasera|questa settimana|questo mese|per ora|fino|domani",
        r"sì|va bene|ok|certo|esatto|d'accordo|perfetto|(?:il|la) (?:prim\w|second\w|terz\w|ultim\w)|quell\w+|quest\w+|entramb\w|\d",
        r"non c'è problema|non vedo l'ora|perché no|non solo|vorrei|se (?:ti|può|vi) (?:serve|aiutare|interessa)",
    ),
    "pt": Language(
        "o os um uma do da dos das e mas eu sou é são meu minha meus com para por em no na que ao estou tenho moro",
        r"não|nunca|jamais|nada|ninguém|nenhum\w*|sem|nem|odeio|evito|parei",
        r"se (?:eu|você|ele|ela|nós|não|fosse|for|tiver|tivesse)|seria|teria|poderia|talvez|imagine\w*|suponha|como se|fosse|provavelmente",
        r"(?:ele|ela|eles|elas|amig\w+|chefe|mãe|pai|irmã|irmão|mulher|marido) (?:\w+ )?(?:diz\w*|disse\w*|pensa|acha|acredita|quer)|segundo|dizem que|me disse",
        r"ele|ela|eles|elas|(?:minha|meu|meus|minhas|noss\w+|sua|seu)(?: \w+)?? (?:mãe|pai|pais|irmã|irmão|mulher|esposa|marido|filh\w+|ti[oa]|av[óô]|amig\w+|chefe|colega|vizinh\w|médic\w|namorad\w)(?! e eu\b)",
        r"eu|meu|minha|meus|minhas|nós|sou|estou|tenho|moro|trabalho|me",
        r"o que|qual|quais|onde|como|por que|quem|quanto",
        r"faz de conta|(?:exemplo|letra|papel d\w+)(?: [^.!?\n:]{0,40})?:|finja|imagine\w*|escrev\w+ (?:uma?) (?:\w+ )?(?:história|poema|carta|cena)",
        r"na verdade|não espera|espera|quis dizer|desculpa|brincadeira|esquece",
        r"hoje|esta semana|essa semana|este mês|por enquanto|até|amanhã",
        r"sim|ok|claro|certo|exato|perfeito|[oa] (?:primeir\w|segund\w|terceir\w|últim\w)|ess[ea]|est[ea]|ambos|\d",
        r"não tem problema|por que não|não só|sem dúvida",
    ),
    "nl": Language(
        "de het een en maar ik ben is zijn mijn wij ons onze met voor van op aan te heb heeft dat niet uit bij naar sinds",
        r"niet|geen|nooit|niets|niemand|zonder|nee|noch|haat|vermijd|gestopt",
        r"als (?:ik|je|jij|hij|zij|ze|we|wij|het|er|de|mijn)|indien|zou|zouden|misschien|stel|stel je voor|alsof|waarschijnlijk",
        r"(?:hij|zij|ze|men|vriend\w*|baas|moeder|vader|zus|broer|vrouw|man) (?:\w+ )?(?:zegt|zei|denkt|vindt|gelooft|wil)|volgens|ik hoorde",
        r"hij|zij|ze|(?:mijn|onze|zijn|haar)(?: \w+)?? (?:moeder|vader|ouders|zus|broer|vrouw|man|partner|zoon|dochter|kinderen|oom|tante|oma|opa|vriend\w*|baas|collega\w*|buur\w+|arts)(?! en ik\b)",
        r"ik|mijn|wij|we|ons|onze",
        r"wat|waar|hoe|wanneer|waarom|welke?|wie|kan ik|moet ik",
        r"rollenspel|(?:voorbeeld|songtekst|rol van)(?: [^.!?\n:]{0,40})?:|doe alsof|stel je voor|schrijf (?:een) (?:\w+ )?(?:verhaal|gedicht|brief|scène)",
        r"eigenlijk|nee wacht|wacht|ik bedoel\w*|sorry|grapje|laat maar|onzin",
        r"vandaag|vanavond|deze week|deze maand|voorlopig|tot|morgen",
        r"ja|ok|oké|prima|precies|klopt|graag|de (?:eerste|tweede|derde|laatste|andere)|die|dat|deze|beide|\d",
        r"niet alleen|geen probleem|waarom niet|zou graag",
    ),
    "tr": Language(
        "ve geçen onu onun ol iyi evet mi mu bir bu şu ben benim biz bizim için ile çok ama da de var gibi daha her olarak",
        r"değil\w*|yok|hiç|asla|hayir|ne|olmadan|sevmem|yemem|içmem|istemem|biraktim"
        r"|\w{2,}m[iu]yor\w*|\w{2,}[aiueo]?m[ea]z(?:s[iu]n|lar|ler)?|\w{2,}m[ea]d[iu]\w*|\w{2,}m[ea]m(?<!tamam)(?<!hamam)",
        r"eğer|belki|keşke|sanki|farz et\w*|diyelim|hayal et\w*|\w+s[ae]yd[iu]m?|\w+[ae]rd[iu]m|muhtemelen|galiba|ise",
        r"\w+ (?:diyor\w*|dedi\w*|düşünüyor\w*|söyledi\w*|istiyor(?!um))|göre|güya",
        r"(?:benim )?(?:annem|babam|ablam|ağabeyim|abim|kardeşim|kiz kardeşim|eşim|karim|kocam|oğlum|kizim|arkadaşim|dostum|patronum|müdürüm|komşum|teyzem|amcam|dayim|halam|doktorum)(?! ve ben\b)",
        r"ben|benim|biz|bizim|bana|beni",
        r"\w+ m[iu]\w*|ne|nerede|nasil|niye|neden|hangi\w*|kim|kaç",
        r"rol yap\w*|hayal et\w*|(?:hikaye|şiir|mektup) yaz\w*",
        r"aslinda|dur|yok yok|pardon|şaka\w*|boş ver|düzeltme|yanliş",
        r"bugün|bu gece|bu akşam|bu hafta|bu ay|şimdilik|kadar|yarin",
        r"evet|tamam|olur|ok|peki|tabii?|birinci\w*|ikinci\w*|üçüncü\w*|ilki\w*|sonuncu\w*|o|bu|ikisi\w*|\d",
        r"sorun değil|önemli değil|ne zaman|ne kadar",
    ),
    "ru": Language(
        "и в на я не что с мой моя мои мы у меня это по за из но для от",
        r"не|нет|ни|никогда|ничего|никто|без|нельзя|ненавижу|избегаю|бросил\w?",
        r"если|бы|б|может|возможно|наверное|представь\w*|допустим|будто|словно",
        r"(?:он|она|они|друг|подруга|мама|папа|начальник|жена|муж|брат|сестра|врач) (?:\w+ )?(?:говор\w+|сказал\w?|думает|считает|хочет)|по словам|согласно|говорят",
        r"он|она|они|(?:мо[йяи]|наш\w?|его|её|ее)(?: \w+)?? (?:мама|мать|папа|отец|родители|сестра|брат|жена|муж|сын|дочь|дети|дядя|тетя|бабушка|дедушка|друг|подруга|начальник|коллег\w|сосед\w*|врач)(?! и я\b)",
        r"я|мой|моя|моё|мое|мои|мы|мне|меня|у меня|наш\w*",
        r"что|где|как|когда|почему|какой|какая|какие|кто|сколько|ли",
        r"ролев\w+|представь\w*|притвор\w+|напиши (?:\w+ )?(?:рассказ|стих\w*|письмо|сцену)",
        r"вернее|точнее|стоп|погоди|подожди|шучу|шутка|забудь|ой",
        r"сегодня|на этой неделе|в этом месяце|пока|до|завтра",
        r"да|ок|ладно|хорошо|конечно|точно|перв\w+|втор\w+|трет\w+|последн\w+|это\w?|та|тот|оба|\d",
        r"не только|почему бы и нет|нет проблем",
    ),
    "ja": Language(
        "",
        r"ない|なかった|ません|じゃな|ではな|なく|ずに|やめた|やめまし|嫌い|苦手",
        r"もし|たら|なら|れば|かもしれ|たぶん|多分|想像|仮に|としたら|だろう|でしょう",
        r"と言っ|と言う|と言い|によると|らしい|そうです|そうだ|と思っている|だって",
        r"(?:私の|僕の|俺の|うちの)?(?:母|父|お母さん|お父さん|姉|兄|妹|弟|妻|夫|息子|娘|友達|友人|上司|同僚|両親|彼|彼女|先生)(?:は|が|も)",
        r"私|僕|俺|わたし|ぼく|うち",
        r"(?:です|ます|でしょう)か|何(?:が|を|で)|どこ|どう|いつ|なぜ|誰|ですか",
        r"ロールプレイ|ふりをして|物語|小説|のつもり|なりきっ",
        r"いや|違う|間違え|やっぱり|冗談|訂正",
        r"今日|今夜|今週|今月|まで|明日|しばらく",
        r"はい|うん|ええ|そう|それ|これ|最初|一番目|二番目|1番|2番|3番|両方|お願い|いい",
        r"なければ|問題ない|かもしれないけど|いつも",
        spaced=False,
    ),
    "zh": Language(
        "",
        r"不|没|沒|无|別|别|未|勿|从来|戒了|讨厌",
        r"如果|要是|差点|差一点|险些|假如|假设|假装|可能|也许|或许|大概|想象|的话|万一|应该会",
        r"(?:他|她|他们|她们|妈妈|爸爸|朋友|老板|同事|医生|老师|别人|有人)(?:们)?(?:说|觉得|认为|想让|告诉)|听说|据说",
        r"他|她|(?:我的?|我们的?)(?:妈妈|妈|爸爸|爸|母亲|父亲|父母|姐姐|姐|哥哥|哥|妹妹|妹|弟弟|弟|妻子|老婆|丈夫|老公|儿子|女儿|孩子|朋友|老板|同事|邻居|奶奶|爷爷|医生|老师)(?!和我)",
        r"我|我们",
        r"吗|呢|什么|哪|怎么|为什么|谁|几点|多少",
        r"角色扮演|假装|扮演|小说|故事|写一封|写一首",
        r"不对|等等|其实|开玩笑|说错|算了|更正",
        r"今天|今晚|这周|本周|这个星期|这个月|暂时|直到|明天",
        r"是|好|对|行|可以|第一|第二|第三|最后|那个|这个|都|就",
        r"不但|不仅|没问题|不客气|没关系|差不多|不好意思|特别|分别|性别|级别",
        spaced=False,
    ),
    "ar": Language(
        "في من على أنا إلى عن هذا هذه مع أن و هو هي لي عندي",
        r"[وف]?(?:لا|لم|لن|ليس\w*|لست|مش|مو|ما|بدون|غير|أبدا|أبدًا|أكره|أتجنب|توقفت)",
        r"[وف]?(?:لو|إذا|إن|ربما|تخيل\w*|لنفترض|افترض|كأن\w*|قد|ليت\w*|يمكن)",
        r"(?:قال\w*|يقول\w*|تقول|يعتقد|تعتقد|يظن|تظن|أخبرني|أخبرتني|حسب|وفقا|سمعت)",
        r"هو|هي|هم|(?:أمي|أبي|والدي|والدتي|أختي|أخي|زوجتي|زوجي|ابني|ابنتي|صديقي|صديقتي|مديري|جاري|عمي|خالي|خالتي|عمتي|جدي|جدتي)(?! وأنا)",
        r"أنا|نحن|لي|عندي|لدي",
        r"هل|ماذا|أين|كيف|متى|لماذا|كم|أي",
        r"تظاهر\w*|تخيل\w*|اكتب (?:قصة|قصيدة|رسالة)",
        r"في الواقع|انتظر|أقصد|عفوا|أمزح|انس",
        r"اليوم|الليلة|هذا الأسبوع|هذا الشهر|حتى|غدا",
        r"نعم|أجل|حسنا|موافق|تمام|الأول\w*|الثاني\w*|الثالث\w*|الأخير\w*|هذا|ذلك|كلاهما|\d",
        r"لا مشكلة|لا بأس|ما زلت|لا أزال",
    ),
    "hi": Language(
        "में है हूँ हूं का की के और से को मैं मेरा मेरी मेरे पर यह हैं",
        r"नहीं|नही|मत|न|ना|कभी|बिना|नफरत|नफ़रत|छोड़ दिया",
        r"अगर|यदि|शायद|मान लो|मानो|कल्पना|काश|होता|होती|सकता|सकती",
        r"कहता|कहती|कहते|कहा|बोला|बोली|सोचता है|सोचती है|मानना|के अनुसार|सुना है",
        r"वह|वो|वे|(?:मेरी|मेरा|मेरे|हमारे|हमारी)(?: \S+)?? (?:माँ|मां|पिता|पापा|मम्मी|बहन|भाई|पत्नी|पति|बेटा|बेटी|बेटे|दोस्त|बॉस|चाचा|मामा|दादी|दादा|पड़ोसी|डॉक्टर)",
        r"मैं|मुझे|मेरा|मेरी|मेरे|हम|हमारा|हमारे",
        r"क्या|कहाँ|कहां|कैसे|कब|क्यों|कौन|कितन\S+",
        r"नाटक|कल्पना|कहानी लिखो|कविता लिखो",
        r"दरअसल|रुको|मेरा मतलब|माफ|मज़ाक|मजाक|गलत",
        r"आज|इस हफ्ते|इस हफ़्ते|इस महीने|फिलहाल|तक|कल",
        r"हाँ|हां|ठीक|जी|पहला|पहली|पहले|दूसर\S+|तीसर\S+|आखिर\S+|वही|यही|दोनों|\d",
        r"कोई बात नहीं",
    ),
    "ko": Language(
        "",
        r"안|못|전혀|결코|절대|없\w*|않\w*|아니\w*|아닌|싫\w*|\w+없\w*|끊었\w*|그만두\w*|말고",
        r"만약|만일|아마도?|혹시|가정\w*|\w+[라다]면|상상\w*|\w+지도 모\w*|것 같\w*",
        r"\w+[라다]고 (?:말\w*|했\w*|생각\w*|들\w*)|\w+에 따르면|\w+대요",
        r"그는|그녀\w*|그들\w*|(?:제|내|우리)(?: \w+)?? ?(?:어머니|엄마|아버지|아빠|누나|언니|형|오빠|동생|아내|남편|아들|딸|친구|상사|동료|부모님|이웃|선생님)\w*",
        r"저는|나는|전|난|제가|내가|제|내|저희\w*|우리\w*|저도|나도",
        r"(?:무엇|뭐|어디|언제|왜|누구|어떻게|몇)\w*|\w+(?:니까|나요|까요)",
        r"역할극\w*|\w*척 ?하\w*|(?:소설|이야기|시)를 써\w*",
        r"사실은|아니|잠깐\w*|농담\w*|정정\w*",
        r"오늘\w*|이번 ?[주달]\w*|당분간|내일\w*|\w*까지|잠시",
        r"네|예|응|그래\w*|좋아\w*|첫 ?번째\w*|두 ?번째\w*|세 ?번째\w*|마지막\w*|그거|이거|둘 다|\d",
        r"문제 ?없\w*|뿐만? 아니라",
    ),
    "th": Language(
        "",
        r"ไม่|มิได้|เลิก|เกลียด|อย่า|ห้าม",
        r"ถ้า|หาก|อาจ|คงจะ|น่าจะ|สมมติ|สมมุติ|บางที",
        r"(?:เขา|เธอ|แม่|พ่อ|เพื่อน|หัวหน้า|หมอ)(?:บอก|พูด|คิด|เชื่อ)ว่า|ได้ยินว่า|ว่ากันว่า",
        r"เขา|เธอ|(?:คุณ)?(?:แม่|พ่อ|พี่สาว|พี่ชาย|น้องสาว|น้องชาย|ภรรยา|สามี|ลูกสาว|ลูกชาย|เพื่อน|หัวหน้า)",
        r"ผม|ฉัน|ดิฉัน|เรา",
        r"ไหม|มั้ย|หรือเปล่า|หรือไม่|อะไร|ที่ไหน|เมื่อไ|อย่างไร|ยังไง|ใคร",
        r"สวมบทบาท|แกล้งเป็น|แต่ง(?:เรื่อง|กลอน|นิยาย)",
        r"ไม่ใช่|ล้อเล่น|เดี๋ยวก่อน|พูดผิด|ที่จริง",
        r"วันนี้|คืนนี้|สัปดาห์นี้|อาทิตย์นี้|เดือนนี้|จนถึง|พรุ่งนี้|ชั่วคราว",
        r"ใช่|ได้|ตกลง|โอเค|อันแรก|อันที่|อันนี้|ทั้งสอง",
        r"ไม่เป็นไร|ไม่ใช่แค่|ไม่กี่|ไม่มีปัญหา",
        spaced=False,
    ),
}

_LETTERS = {"tr": "[ğş]", "es": "[ñ¿¡]", "pt": "[ãõ]", "de": "ß"}
"""Letters that tell a language among those of Latin script."""

_SCRIPTS = {
    "ja": "[\u3040-\u30ff]",
    "zh": "[\u4e00-\u9fff]",
    "ar": "[\u0600-\u06ff]",
    "hi": "[\u0900-\u097f]",
    "ru": "[\u0400-\u04ff]",
    "ko": "[\uac00-\ud7af]",
    "th": "[\u0e00-\u0e7f]",
}
_TELLING = {
    "en": "i'm im he she his her they them their who what when where how why which some any every very much because if then"
    " one two three other another thing something please thanks hey yes yeah yep great last away passed ago female male named called"
    " lives works lived worked got getting can will would should could just really still only over left old new"
}
"""More words that tell a language; unlike function words they may carry the meaning of a value."""
_EVERY_FUNCTION_WORD = {
    code: frozenset(lang.function_words.split()) for code, lang in LANGUAGES.items()
}
_MORE_TELLING = {code: frozenset(words.split()) for code, words in _TELLING.items()}
_MORE = (
    "i he she they his her them us will can just also very really some any who when what how ich sich je il elle on"
    " yo he ha muy io si eu ik hij zij ze ein'"
)
FUNCTION_WORDS = frozenset().union(*_EVERY_FUNCTION_WORD.values()) | set(_MORE.split())
KINDS = tuple(f.name for f in fields(Language) if f.name not in ("function_words", "spaced"))


@cache
def _pattern(code: str, kind: str) -> re.Pattern[str]:
    language = LANGUAGES[code]
    words = getattr(language, kind)
    if not language.spaced:
        return re.compile(f"(?:{words})")
    return re.compile(rf"(?<![{_MARK}])(?:{words})(?![{_MARK}])")


def languages_of(folded: str) -> tuple[str, ...]:
    """The languages with lists that a folded text may be in, likeliest first; empty for none."""
    found = [code for code, script in _SCRIPTS.items() if re.search(script, folded)]
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", folded)
    latin = [word for word in words if word[0] < "\u0250"]
    hits = {
        code: sum(word in known or word in _MORE_TELLING.get(code, ()) for word in latin)
        for code, known in _EVERY_FUNCTION_WORD.items()
        if code not in _SCRIPTS
    }
    for code, letters in _LETTERS.items():
        hits[code] += len(latin) if re.search(letters, folded) else 0
    best = max(hits.values(), default=0)
    if latin and best and best >= len(latin) / 8:
        found += sorted((c for c, n in hits.items() if n >= best * 0.6), key=lambda c: -hits[c])
    return tuple(found)


def marked(kind: str, folded: str, languages: tuple[str, ...]) -> list[re.Match[str]]:
    """Where markers of one kind stand in a folded text, harmless set phrases left out.

    With no language known, every list is read: it can only make the judgement stricter.
    """
    found: list[re.Match[str]] = []
    for code in languages or tuple(LANGUAGES):
        safe = [m.span() for m in _pattern(code, "harmless").finditer(folded)]
        found += [
            m
            for m in _pattern(code, kind).finditer(folded)
            if not any(a < m.end() and m.start() < b for a, b in safe)
        ]
    return found


def opens_with(kind: str, folded: str, languages: tuple[str, ...]) -> bool:
    """Whether a folded text begins with a marker of one kind."""
    text = folded.lstrip(" \"'([-¿¡")
    return any(_pattern(code, kind).match(text) for code in languages or tuple(LANGUAGES))


PASTE = re.compile(
    r"(?<!\w)(?:translat\w+|proof-?read|summari[sz]e|paraphrase|rewrite|rephrase|correct (?:this|the|my)|fix (?:this|the|my)"
    r"|edit (?:this|the|my)|analy[sz]e (?:this|the)|explain (?:this|the)|what does|(?:here(?:'s| is)|this is) (?:the|an|my|his|her|what)"
    r" (?:\w+ )?(?:e-?mail|text|message|article|letter|draft|transcript|log|quote|lyrics)|übersetz\w*|fasse|korrigier\w*|tradui\w+"
    r"|résume\w*|corrige\w*|traduce\w*|traducir|resume|traduci|riassumi|traduz\w*|vertaal|çevir\w*|переведи\w*|翻訳|翻译|翻譯|ترجم\w*|अनुवाद)(?!\w)",
    re.IGNORECASE,
)

REMEMBER = re.compile(
    r"remember|keep|save|note|store|don't forget|merk|speicher|retiens|souviens|recuerda|guarda|ricorda|lembr|onthoud|hatirla|unutma|запомни|覚えて|记住|記住|تذكر|याद",
    re.IGNORECASE,
)

NOT_TO_KEEP = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\byou )(?<!\bto )"
    r"\b(?:don['’]?t|do not|never|stop|without) (?:remember|sav|stor|keep|memori[sz]|note)"
    r"|\b(?:merk\w* (?:dir|euch) (?:das |es )?nicht|nicht (?:merken|speichern))\b"
    r"|\bne (?:retiens|retenez|note|notez|m[ée]morise) pas\b|\bno (?:recuerdes|guardes|anotes)\b"
    r"|\bnon (?:ricordare|salvare|memorizzare)\b|\bn[ãa]o (?:guardes?|lembres?|anotes?)\b"
    r"|\bonthoud \w* ?niet\b|\bniet (?:onthouden|opslaan)\b",
    re.IGNORECASE,
)
"""A person's wish that something is not remembered."""

KEEP_ELSE = re.compile(
    r"\w*\s+(?:me|us|him|her|them|an?|the (?!following|fact|above)|any (?!of (?:this|it|that))(?!personal|data|info)|some|your|more|too|so|up|on)(?!\w)",
    re.IGNORECASE,
)
"""What follows where it is another thing that is not to be kept: a seat, money, the receipt."""

RETRACTED = re.compile(
    r"(?<!not )(?<!no )(?<!nicht )(?<!n't )(?<!\w)(?:joking|kidding|i lied|i'm lying|i was lying|gelogen|ich lüge|scherze|gescherzt|j'ai menti|je mens|je plaisante\w*|mentí|he mentido|bromeando|ho mentito|scherzo|scherzavo|menti|estou brincando|ik loog|grapje|yalan söyl\w+|şaka yap\w+|шучу|соврал\w?|я врал\w?)(?!\w)"
    r"|冗談|嘘を?つ|开玩笑|骗你|撒谎|농담|거짓말|أمزح|كذبت|मज़ाक कर|झूठ बोल|ล้อเล่น|โกหก"
)
"""Words by which a sentence takes itself back."""
