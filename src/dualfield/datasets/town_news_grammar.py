"""The grammar of :func:`dualfield.datasets.load_town_news`: names, phrases and sentences, in plain text.

``{symbol}`` stands for one of the lines of a symbol, ``[a|b|]`` for one of its parts, and ``<PER ...>`` marks a span.
Tokens are separated by spaces. All names are made up of common ones: people, firms and towns are fictional. Many are
ambiguous on purpose: surnames that are towns, given names that are months or verbs, teams called as their town.
"""

from __future__ import annotations

# Training and test sentences use different thirds of each of these lists: see town_news.
NAMES = {
    "first": """Anna Mark Ines May Tomas Rose Will Priya Jordan Helen Owen June Pavel Grace Frank Leila April Hugo Norma
        Karim Florence Bela Ruth Austin Mira Piers Victoria Idris Hope Lukas Sydney Amara Joan Chase Nadia Edgar Paris
        August Thea Ravi Carson Greta Miles Sofia Dale""",
    "surname": """Weston Hale Marlow Duarte Ashby Price Kendal Holm Banks Stanton Okoro Field Langley Park Brandt
        Winslow May Novak Clifton Street Ferrars Lowell Hill Adeyemi Barton March Thornby Castell Reading Young
        Selby Iyer Preston Wells Harwick Moss Denby Church Alder Rowan Farrow Bridges Lindqvist Colby Hart Underhill
        Pryce Ridley Stone Vance Whitby Marsh Eastwood Calloway""",
    "foreign": "Molen Cruz Berg Haas Vega Stein Ruiz Linden Rossi Dijk Luca Velde",
    "town": """Weston Northfield Marlow Ashby Kendal Brackwater Stanton Langley Elmsworth Winslow Clifton Hale Thornby
        Barton Saltmere Reading Selby Harwick Preston Denby Kingsmoor Lowell Colby Whitby Farrow Millbrook Wells Rowan
        Castleby Eastwood Jordan Florence Hope Underhill Alder Dunmere""",
    "river": "Lim Arrow Tarn Wells Ouse Rowan Teal Hope Medlock Ash",
    "acronym": "NWR BTC KSA ULP DRX MHT WFA ECB TLG",
}

PHRASES = {
    "person": """
        <PER {first} {surname}>
        <PER {first} {surname}>
        <PER {first} {surname}>
        <PER {first} {surname}>
        <PER {first} {letter} {surname}>
        <PER {letter} {surname}>
        <PER {first} [van der|de la|von|van|de] {foreign}>
        [Mr|Mrs|Ms|Dr|Judge|Councillor] <PER {surname}>
        [Professor|Captain|Inspector|Mayor] <PER {first} {surname}>
        """,
    "known": """
        <PER {surname}>
        <PER {first}>
        <PER {surname}>
        [Mr|Mrs|Ms|Dr] <PER {surname}>
        """,
    "place": """
        <LOC {town}>
        <LOC {town}>
        <LOC {town}>
        <LOC [North|South|East|West|Upper|New|Old] {town}>
        <LOC {town} on {river}>
        <LOC {town} under {surname}>
        <LOC {surname} [Street|Road|Lane|Square]>
        <LOC Lake {surname}>
        <LOC [Port|Mount|Cape] {surname}>
        the <LOC Isle of {town}>
        the <LOC River {river}>
        """,
    "city": """
        <LOC {town}>
        <LOC {town}>
        <LOC {town}>
        <LOC [North|South|New|Old] {town}>
        <LOC {town} on {river}>
        """,
    "street": "<LOC {surname} [Street|Road|Lane|Square]>\n<LOC {town}>\n<LOC [North|South|Upper|Old] {town}>",
    "firm": """
        <ORG {surname} [& Sons|and Sons|Brothers|Motors|Foods|Engineering|Group|Holdings]>
        <ORG {surname} & {surname}>
        <ORG {surname} , {surname} and Co>
        <ORG {first} {surname} [Homes|Ltd|Travel]>
        <ORG Bank of {town}>
        <ORG {town} [Savings Bank|Steel|Water|Telecom|Ferries]>
        <ORG {acronym}>
        """,
    "body": """
        <ORG {town} [Council|Town Council|Water Board|Harbour Trust|Chamber of Commerce]>
        the <ORG {town} [Council|Housing Trust|Rowing Club|Museum]>
        the <ORG University of {town}>
        the <ORG Friends of {town} [Park|Library|Station]>
        the <ORG {first} {surname} Foundation>
        the <ORG {acronym}>
        <ORG Saint {first} 's [School|Hospital]>
        <ORG {town} [College|Hospital|Library]>
        """,
    "org": "{firm}\n{body}",
    "paper": "<ORG {town} [Gazette|Herald|Post|Courier]>\n<ORG {acronym} News>",
    "team": "<ORG {town}>\n<ORG {town}>\n<ORG {town} [United|Rovers|City|Athletic]>\n<ORG {town} Park Rangers>",
    "on": """
        on <DATE {weekday}>
        on <DATE {weekday}>
        on <DATE {day} {month}>
        on <DATE {weekday} {day} {month}>
        on <DATE {month} {day}>
        on <DATE {day} {month} {year}>
        """,
    "in": """
        in <DATE {month}>
        in <DATE {month}>
        in <DATE {month} {year}>
        in <DATE {year}>
        in <DATE [spring|summer|autumn|winter] {year}>
        in early <DATE {month}>
        at the end of <DATE {month}>
        """,
    "when": "{on}\n{on}\n{in}",
    "letter": " ".join("ABCDEGHJKLMNPRSTW").replace(" ", ".\n") + ".",
    "weekday": "Monday\nTuesday\nWednesday\nThursday\nFriday\nSaturday\nSunday",
    "month": "January\nFebruary\nMarch\nApril\nMay\nMay\nJune\nJuly\nAugust\nSeptember\nOctober\nNovember\nDecember",
    "day": "\n".join(map(str, range(1, 29))),
    "year": "2021\n2022\n2023\n2024\n2025",
    "past": "1898\n1926\n1954\n1968\n1979\n1987\n1994\n2003\n2011",
    "age": "19\n27\n34\n46\n58\n61\n73\n80",
    "few": "3\n5\n6\n9\n11\n16\n22\n40",
    "number": "4\n7\n12\n18\n40\n60\n120\n250\n400\n900\n2000",
    "job": "teacher\nnurse\nbaker\ncivil engineer\nplumber\nharbour master\nlibrarian\ntrain driver\nsurveyor",
}

SENTENCES = """
{person} , [a former mayor of|born in|who grew up in] {city} , will [speak|read from her book|open the fair] {on} .
{body} will decide {on} whether the market in {street} [may stay open|can move|must close] .
{firm} has sold its [mill|office|warehouse] in {city} to {firm} for {number} million .
The bridge over the <LOC River {river}> at {city} [was closed|was reopened|will be repaired] {in} .
{team} beat {team} [2 - 1|3 - 0|4 - 2|after extra time] {on} , with both goals from {known} .
" We never heard from {known} again , " said {person} of {body} .
Police in {city} are looking for {person} , last seen near {place} {on} .
{person} [left|joined|chaired] {org} {in} [and now works for {org}|after a dispute with {known}|] .
[Trains|Buses|Coaches] from {city} to {city} will not run {on} .
A spokesman for {firm} said {number} [jobs|posts] may go {in} .
Mark the date : {person} plays in {city} {on} .
{known} and {known} met in {city} {in} and moved to {city} a year later .
The {paper} reported {on} that {known} had [left|bought|sued] {firm} .
{number} people came to hear {person} at {body} {on} .
In {city} , {person} [keeps|sells|mends] clocks much as her father did {in} .
Will {known} stand again ? Nobody at {body} would say .
{person} ( {team} ) , {person} ( {team} ) and {person} ( {team} ) share the lead .
Ferries between {city} and the <LOC Isle of {town}> resume {on} , {org} says .
Not everybody in {street} likes the plan , which {known} drew up for {org} {in} .
Bill {known} for the repairs , wrote {person} to {body} {on} .
Fire at <LOC {surname} Mill> : Two Hurt , One Missing
{city} Votes on New Library
{person} , {age} , of {street} , was fined {on} for [fishing|parking|keeping geese] without a licence .
The road from {city} to {city} was blocked at {place} for [hours|most of the day|a week] .
{person} has taught at {body} since <DATE {past}> [and plans to retire {in}|] .
Born in {city} in <DATE {past}> , {known} began as a {job} and ended as head of {firm} .
{org} [thanked|sued|hired] {org} .
Flowers for {known} may be left at {place} until <DATE {weekday}> .
" It is a small town , " {known} said of {city} , " but <DATE May> is lovely here . "
Rain is expected in {city} and {city} {on} , with snow on <LOC Mount {surname}> .
Results : {team} 3 {team} 1 , {team} 0 {team} 0 .
{team} have signed {person} from {team} until <DATE {month} {year}> .
The [shop|office] in {street} opens again {on} , {known} of {firm} confirmed .
At {place} the ice was thin , and {known} turned back .
{body} has asked {person} , a {job} from {city} , to look into the accident of <DATE {day} {month}> .
Letters to {known} , care of {firm} , {street} , {city} .
{person} and {person} [will marry|were married] in {city} {in} .
The painting , lent by {body} , shows {place} as it was in <DATE {past}> .
Since <DATE {month}> , {firm} has charged {number} a month for parking in {street} .
{known} 's [mother|uncle|sister] , {person} , worked for {firm} until <DATE {past}> .
Two men from {city} were rescued from <LOC Lake {surname}> {on} after their boat sank .
{person} told the {paper} that {org} owed her {number} [pounds|hours of leave] .
[Mayor|Judge] <PER {surname}> opened the new wing of {body} {on} .
From {city} we took the night train to {city} ; {known} slept , {known} did not .
{org} and {org} announced {on} that they would merge {in} .
Who was {person} ? A {job} from {city} , says the {paper} .
{known} rose to thank {known} and {known} for their work at {org} .
The trial of {person} begins in {city} {on} before Judge <PER {surname}> .
For {few} years {firm} has made boots in {street} .
A letter from {known} to {known} , found in {city} {in} , is for sale .
{person} is survived by two children , <PER {first}> and <PER {first}> .
Lost near {place} {on} : a grey cat . Please call {known} .
Council Leader <PER {surname}> Resigns After Row Over <LOC {town} Bridge>
{person} won the race from {city} to {city} ahead of {person} of {team} .
The mill , built for {firm} in <DATE {past}> , burned down {on} .
Cook with {known} : the chef of {body} shares what she learned in {city} .
Grace was said by {known} , and the dinner of {body} went on until late .
{firm} shares fell {few} percent {on} after {person} resigned .
If {known} agrees , {team} will play {team} in {city} {on} .
{paper} , <DATE {day} {month} {year}> , page {number} .
The {job} 's name was {known} ; nobody in {street} knew more .
Work on {place} starts {on} and should end {in} , according to {body} .
{body} [in|near] {city} needs a {job} from <DATE {day} {month}> .
Hope is fading for the {number} miners , {known} of {firm} told reporters in {city} .
{number} [houses|flats] in {street} were without water {on} , {firm} said .
Thieves took {number} [bicycles|paintings] from {body} {on} .
At the age of {age} , {person} of {city} has swum across <LOC Lake {surname}> .
{person} of {firm} and {person} of {body} disagreed about the cost .
<PER {first}> and the band play at {body} {on} .
The line to {city} , closed in <DATE {past}> , may reopen {in} .
They walked from {place} to {place} in two days , {known} limping .
{city} , <DATE {month} {day}> - {org} has [named|dismissed] {person} as director .
{known} , however , was in {city} {on} , as her diary shows .
{team} coach {person} rested {known} and {known} against {team} .
The dog found by {known} in {street} belongs to {person} .
Talks between {firm} and its drivers broke down in {city} {on} .
It was {known} who founded {body} {in} , not {known} .
Rents in {city} have doubled since <DATE {past}> , a study by {body} shows .
Tickets from {body} , {street} , or at the door {on} .
Next to {firm} stands the house where {person} was born in <DATE {past}> .
Before <DATE {past}> the village was part of {city} .
{person} bought the farm near {city} from {firm} {in} .
Councillors from {city} and {city} met {person} {on} .
Nurses at {body} will strike {on} , their leader {person} announced .
The storm reached {city} {on} and left {number} people homeless in {street} .
{known} said no . {known} said nothing .
{person} , the youngest member of {body} , was elected {in} .
Ask for {known} at {firm} , {number} <LOC {surname} [Street|Road]> .
School starts again in {street} {on} .
{org} moved from {city} to {city} {in} .
March with us {on} from {place} to {place} !
{known} scored twice for {team} in <DATE {month}> .
The will of {person} left everything to {body} .
Young players such as {known} and {known} give {team} hope .
Plans for {place} were shown at {body} {on} ; {person} called them ugly .
" Ask {known} , " said the {job} , " or write to {firm} . "
The new timetable of {org} begins {on} .
Archaeologists from the <ORG University of {town}> found {number} coins at {place} .
{person} 's novel about {city} won the prize of {body} {in} .
Heavy lorries may not use {street} {when} .
Only {known} knew the way to {place} .
Street lights in {street} and {street} will be out {on} .
Did {known} ever live in {city} ? Her letters say so ; the {paper} says not .
{person} has been {job} to {body} for {few} years .
Snow closed the school in {city} {on} , but not {body} .
Two goals by {known} were not enough : {team} lost to {team} .
{known} ( left ) and {person} at the opening of {firm} in {city} , <DATE {day} {month} {year}> .
The price of bread in {city} rose by {few} percent between <DATE {month}> and <DATE {month}> .
{firm} of {city} will build {number} flats on the site of {firm} .
Nobody was hurt when a lorry of {firm} hit a wall in {street} <DATE last {weekday}> .
{person} came to {city} as a child and never left .
Correction : the man in the picture is {person} , not {person} , as we wrote {on} .
The choir of {body} sings in {city} {on} and in {city} a week later .
" May I ask who pays ? " said {known} . {known} looked away .
Members of {body} voted {number} to 3 against {known} {on} .
{team} will miss {known} against {team} {on} .
Cook wanted : {firm} , {street} , from <DATE {month}> .
Dear {known} , thank you for your letter of <DATE {day} {month}> .
The hills above {city} were white when {known} and {known} set out .
{org} said {on} it would appeal ; {org} had no comment .
Frank talk at {body} : {person} on the future of {city} .
{known} was a {job} . So was {known} , until <DATE {past}> .
Swimmers should keep out of the <LOC River {river}> below {city} , {body} warned {on} .
A day after {team} let him go , {known} signed for {team} .
The first train left {city} at 6 and reached {city} at 9 , {few} minutes late .
{body} gives its prize for <DATE {year}> to {person} and {person} .
Paint from {firm} , wood from {city} , and help from {known} : that is how the boat was saved .
What {known} wants is plain : a bridge at {place} , and soon .
{person} - better known as <PER {first}> - sang in {city} for the last time {in} .
Neither {firm} nor {firm} would say why the road to {city} was left unfinished .
Fish from {city} , cheese from {city} , cider from {city} : {known} has it all .
{few} years ago {on} , the roof of {body} fell in .
Price of tickets : {number} . Call {firm} or ask at {body} .
In a letter to {org} , {person} of {street} asks for more buses .
East of {city} the path is closed ; use the one along the <LOC River {river}> .
They buried {known} in {city} {on} , next to {known} .
"""
